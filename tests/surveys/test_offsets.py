"""Offsets: what lies beyond the reach of the histogram is not one place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sightings import SEPARATOR, Text, batch_of, draw_texts, tally_up
from tiny import INTERFACE

from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.surveys.offsets import REACH, Offsets
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


def positions_of(
    texts: list[tuple[int, ...]], family: str, kind: str
) -> dict[tuple[Any, ...], Any]:
    """The rows of `positions` by layer, head and edges."""
    subject = Subject(INTERFACE[family]())
    tallies = tally_up(subject, [batch_of([Text(t) for t in texts], kind)], "headcount")
    tally = next(one for one in tallies if isinstance(one, Offsets))
    return {
        (row["layer"], row["head"], row["edges"]): row
        for row in tally.details()["positions"].to_dict("records")
    }


def slow_rows(texts: list[tuple[int, ...]], offset: int, causal: bool) -> list[tuple[int, float]]:
    """For each token of each text: whether it has a token at the offset, and chance."""
    rows = []
    for text in texts:
        allowed = [i for i, token in enumerate(text) if token != SEPARATOR]
        for i in allowed:
            seen = [j for j in allowed if j <= i or not causal]
            rows.append((int(i + offset in seen), (i + offset in seen) / len(seen)))
    return rows


@pytest.mark.parametrize(("family", "kind"), [("bert", "enc"), ("llama", "dec")])
def test_the_edges_and_the_blind_pick_are_counted_token_by_token(family: str, kind: str) -> None:
    texts = [text.source for text in draw_texts(8, seed=3)]
    found = positions_of(texts, family, kind)
    for (layer, head, _), row in found.items():
        rows = slow_rows(texts, row["offset"], causal=kind == "dec")
        kept, dropped = found[layer, head, "keep"], found[layer, head, "drop"]
        assert kept["n"] == len(rows)
        assert dropped["n"] == sum(there for there, _ in rows)
        assert kept["chance"] == pytest.approx(sum(blind for _, blind in rows) / len(rows))
        assert dropped["chance"] * dropped["n"] == pytest.approx(kept["chance"] * kept["n"])
        assert dropped["share"] * dropped["n"] == pytest.approx(kept["share"] * kept["n"])
        assert 0 < row["p"] <= 1
