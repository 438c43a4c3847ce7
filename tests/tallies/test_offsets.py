"""Offsets: what lies beyond the reach of the histogram is not one place."""

from __future__ import annotations

import torch

from headcount.models.site import Site
from headcount.tallies.offsets import REACH, Offsets
from headcount.text.batch import ready_batch
from headcount.wiring.sighting import look

SITE = Site("dec", 0, heads=2, kv_heads=2, head_dim=4, module="a", causal=True)


def read(maps: torch.Tensor) -> dict[str, list[float]]:
    tally = Offsets()
    batch = ready_batch({"input_ids": torch.ones(1, maps.shape[-1], dtype=torch.long)}, {"dec"})
    tally.update(look(SITE, maps, None, batch, tally.needs))
    return {reading.column: reading.value.tolist() for reading in tally.compute()}


def test_a_head_on_the_first_token_of_a_long_text_is_not_positional() -> None:
    length = 4 * REACH
    maps = torch.zeros(1, 2, length, length)
    maps[0, 0, :, 0] = 1  # the first token, at another offset for each query
    maps[0, 1] = torch.eye(length)  # the token itself
    found = read(maps)
    assert found["best_offset"] == [0, 0]
    assert found["best_offset_share"] == [1 / length, 1]


def test_the_furthest_offset_that_is_told_apart() -> None:
    length, offset = 2 * REACH, REACH - 1
    maps = torch.zeros(1, 2, length, length)
    maps[0, :, torch.arange(length), (torch.arange(length) - offset).clamp(min=0)] = 1
    assert read(maps)["best_offset"] == [-offset, -offset]
