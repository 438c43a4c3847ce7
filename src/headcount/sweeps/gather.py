"""From units to outcomes: what each intervention scored on every example that is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.tasks.outcome import Outcome
from headcount.tasks.sheet import Marks, Sheet
from headcount.tasks.task import Task
from headcount.text.batch import Batch

__all__ = ["done_examples", "outcome_of"]


def done_examples(batches: Sequence[Batch], finished: Sequence[int]) -> list[int]:
    """The examples of which every window is in a finished batch."""
    wanted = Counter(number for batch in batches for number in batch.index)
    found = Counter(number for place in finished for number in batches[place].index)
    return sorted(number for number in wanted if found[number] == wanted[number])


def outcome_of(
    task: Task,
    subject: Subject,
    batches: Sequence[Batch],
    counted: Mapping[int, Floats],
    numbers: Sequence[int],
    notes: Sequence[str],
) -> Outcome:
    """The outcome on some examples, from what was counted in each batch, `[row, column]`.

    `task` is the task on those examples.
    """
    place = {number: place for place, number in enumerate(numbers)}
    sheet = Sheet(len(numbers))
    for number in sorted(counted):
        rows = [row for row, one in enumerate(batches[number].index) if one in place]
        index = [place[batches[number].index[row]] for row in rows]
        if rows:
            sheet.add(index, Marks(counted[number][rows], []))
    return task.outcome(sheet, subject, notes)
