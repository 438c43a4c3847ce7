"""From units to outcomes, also of a part of the examples."""

from __future__ import annotations

import numpy as np
from small_tasks import KINDS

from headcount.importance.sweep.sweep import done_examples, encoded, outcome_of


def test_an_example_is_done_when_all_its_windows_are() -> None:
    subject, task = KINDS["windows"]()
    batches = encoded(task, subject, 2).batches
    rows = [number for batch in batches for number in batch.index]
    assert len(rows) > len(task)
    split = next(n for n in set(rows) if sum(n in batch.index for batch in batches) > 1)
    first = next(place for place, batch in enumerate(batches) if split in batch.index)
    assert split not in done_examples(batches, [first])
    assert done_examples(batches, range(len(batches))) == list(range(len(task)))


def test_windows_add_up_and_others_are_left_out() -> None:
    subject, task = KINDS["windows"]()
    batches = encoded(task, subject, 2).batches
    counted = {n: np.ones((len(batch), 2)) for n, batch in enumerate(batches)}
    numbers = [1, 3]
    outcome = outcome_of(task.part(numbers), subject, batches, counted, numbers, ["so"])
    windows = [sum(batch.index.count(number) for batch in batches) for number in numbers]
    assert outcome.statistics[:, 1].tolist() == windows
    assert outcome.notes == ("so",)
