"""Donors: another example each, the same whatever the batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_tasks import KINDS
from tiny import INTERFACE

from headcount.errors import UsageError
from headcount.importance.sweeps.interventions import (
    Intervention,
    others,
    picked,
    repeat_batch,
    rows_an_example,
    sets,
    single_heads,
    whole_layers,
)
from headcount.importance.sweeps.sweeping import encoded
from headcount.models.anatomy import anatomy_of
from headcount.records.heads import Head
from headcount.rooms.standins.standins import Exchange, ring
from headcount.text.batch import Batch


@pytest.mark.parametrize("count", [2, 3, 17])
def test_nobody_lends_to_itself_and_everybody_lends_once(count: int) -> None:
    donors = ring(range(count), seed=4)
    assert sorted(donors.values()) == list(range(count))
    assert all(example != donor for example, donor in donors.items())


def test_one_example_alone_has_no_donor() -> None:
    with pytest.raises(UsageError, match="there is only one"):
        ring([7], seed=0)


@pytest.mark.parametrize("which", ["classification", "windows", "similarity"])
def test_batches_do_not_show(which: str) -> None:
    """Every row of every batch gets the same donor's tokens, however examples are batched."""
    subject, task = KINDS[which]()

    def lent(batch_size: int) -> dict[tuple[int, int, int], Any]:
        batches = encoded(task, subject, batch_size).batches
        exchange = Exchange(batches, seed=0)
        found = {}
        for number, batch in enumerate(batches):
            each = len(batch.inputs["input_ids"]) // len(batch)
            for donors, rows in exchange.lent(number, range(len(batch))):
                side = next(iter(donors.sides.values()))
                for place, row in enumerate(rows):
                    key = (batch.index[row // each], batch.window[row], row % each)
                    found[key] = side.ids[place][side.real[place]].tolist()
        return found

    assert lent(2) == lent(5)
    assert len(lent(2)) == sum(
        len(batch.inputs["input_ids"]) for batch in encoded(task, subject, 2).batches
    )


def test_donors_of_one_batch_come_from_many() -> None:
    subject, task = KINDS["classification"]()
    batches = encoded(task, subject, 1).batches
    for number in range(len(batches)):
        ((donors, rows),) = Exchange(batches, seed=0).lent(number, [0])
        assert rows == [0]
        assert not torch.equal(donors.inputs["input_ids"], batches[number].inputs["input_ids"])


# --- Interventions ------------------------------------------------------------------------------


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


# --- Batches repeated, and parts of them --------------------------------------------------------


@pytest.mark.parametrize("which", ["classification", "similarity", "translation", "windows"])
def test_copies_lie_one_below_the_other(which: str) -> None:
    subject, task = KINDS[which]()
    batch = encoded(task, subject, 3).batches[0]
    twice = repeat_batch(batch, 2)
    assert twice.index == batch.index * 2
    assert twice.window == batch.window * 2
    for name, tensor in batch.inputs.items():
        assert torch.equal(twice.inputs[name], torch.cat([tensor, tensor]))
    for name, side in batch.sides.items():
        assert torch.equal(twice.sides[name].real, torch.cat([side.real, side.real]))
        assert twice.sides[name].tokens == side.tokens * 2
    assert batch.labels is not None
    assert torch.equal(twice.labels, torch.cat([batch.labels] * 2))  # type: ignore[arg-type]
    assert repeat_batch(batch, 1) is batch


def test_both_texts_of_a_pair_go_together() -> None:
    subject, task = KINDS["similarity"]()
    batch = encoded(task, subject, 4).batches[0]
    assert rows_an_example(batch) == 2
    one = picked(batch, [2])
    assert torch.equal(one.inputs["input_ids"], batch.inputs["input_ids"][4:6])
    assert one.index == [batch.index[2]]


def test_a_batch_of_numbers_only() -> None:
    assert repeat_batch(Batch({}, {}, [3, 4]), 2).index == [3, 4, 3, 4]
