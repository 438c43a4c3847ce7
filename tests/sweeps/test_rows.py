"""Batches repeated, and parts of them."""

from __future__ import annotations

import pytest
import torch
from small_tasks import KINDS

from headcount.importance.sweep.interventions import picked, repeat_batch, rows_an_example
from headcount.importance.sweep.sweep import encoded
from headcount.text.batch import Batch


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
