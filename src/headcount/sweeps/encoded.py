"""The examples of a sweep: encoded once, run many times."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headcount.errors import InputError
from headcount.subject import Subject
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.text.encode import Encoded

__all__ = ["Examples", "encoded"]


@dataclass(frozen=True)
class Examples:
    """A task's batches with their labels, and what a reader should know of them."""

    batches: list[Batch]
    notes: list[str]

    @property
    def order(self) -> list[int]:
        """In which order batches are run: mixed, always alike.

        Tasks put the longest examples first; mixed, what is done when a sweep is broken off is a
        fair sample, and the time left can be told.
        """
        numbers = list(range(len(self.batches)))
        random.Random(0).shuffle(numbers)
        return numbers


def encoded(task: Task, subject: Subject, batch_size: int) -> Examples:
    """Encode all examples; those in which no token is found are told before anything runs."""
    if not len(task):
        raise InputError(f"The task {task.name} has no examples; give one or more.")
    task.check(subject)
    source = task.encode(subject, batch_size)
    batches = [task.dress(batch, subject) for batch in source]
    seen = {number for batch in batches for number in batch.index}
    for number in range(len(task)):
        if number not in seen:
            raise task.no_token(number, subject)
    notes = source.report.sentences_in_words() if isinstance(source, Encoded) else []
    return Examples(batches, notes)
