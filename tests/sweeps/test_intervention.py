"""Interventions: which heads, called what."""

from __future__ import annotations

from tiny import INTERFACE

from headcount.importance.sweep.interventions import (
    Intervention,
    others,
    sets,
    single_heads,
    whole_layers,
)
from headcount.models.anatomy import anatomy_of
from headcount.records.heads import Head

ANATOMY = anatomy_of(INTERFACE["bert"]())


def test_heads_are_sorted_and_counted_once() -> None:
    one = Intervention("enc.1.0,enc.0.2,enc.1.0")
    assert one.heads == (Head("enc", 0, 2), Head("enc", 1, 0))
    assert one.name == "enc.0.2,enc.1.0"
    assert one == Intervention(["enc.0.2", Head("enc", 1, 0)])
    assert Intervention([]).name == "no heads"


def test_units_cover_every_head() -> None:
    assert [one.heads for one in single_heads(ANATOMY)] == [(head,) for head in ANATOMY.heads]
    left = [set(ANATOMY.heads[:4]) - set(one.heads) for one in others(ANATOMY)[:4]]
    assert left == [{head} for head in ANATOMY.heads[:4]]
    assert [len(one.heads) for one in whole_layers(ANATOMY)] == [4, 4]
    assert whole_layers(ANATOMY)[1].name == "layer enc.1"


def test_names_tell_modes_apart() -> None:
    both = [*single_heads(ANATOMY), *single_heads(ANATOMY, "mean")]
    assert len({one.name for one in both}) == 16
    assert sets({"mine": "enc.0.0"}, "uniform")[0].mode == "uniform"
