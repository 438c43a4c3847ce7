"""Donors: another example each, the same whatever the batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_tasks import KINDS

from headcount.errors import UsageError
from headcount.importance.sweep.interventions import Exchange, ring
from headcount.importance.sweep.sweep import encoded


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
            for donors, rows in exchange.lent(number):
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
        ((donors, rows),) = Exchange(batches, seed=0).lent(number)
        assert rows == [0]
        assert not torch.equal(donors.inputs["input_ids"], batches[number].inputs["input_ids"])
