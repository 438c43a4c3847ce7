"""Sightings of a model whose layers lie on several devices."""

from __future__ import annotations

import pytest
import torch
from sightings import batch_of, draw_texts

from headcount.models.site import Site
from headcount.text.batch import Side
from headcount.wiring.sighting import Needs, look

NEEDS = Needs(
    entropy=True,
    smoothed=0.1,
    tops=frozenset({frozenset({"separator"})}),
    masses=frozenset({"first"}),
)
SITE = Site("enc", 0, heads=2, kv_heads=2, head_dim=4, module="a")


def test_sides_come_to_the_device_of_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch lies where the first weight lies, a later layer elsewhere ("meta" stands in)."""
    batch = batch_of(draw_texts(3), "enc")
    length = batch.sides["source"].real.shape[1]
    maps = torch.rand(3, 2, length, length).softmax(-1)
    here = look(SITE, maps, None, batch, NEEDS)
    side, away = batch.sides["source"], batch.to("meta")
    asked: list[torch.device] = []

    def back(_: Side, device: torch.device) -> Side:
        asked.append(device)
        return side

    monkeypatch.setattr(Side, "to", back)
    there = look(SITE, maps, None, away, NEEDS)
    assert set(asked) == {maps.device}
    assert torch.equal(here.masses["first"], there.masses["first"])
    assert torch.equal(here.visible, there.visible)
