"""Lessons: the batches that a model learns from, in a new order in every epoch.

Which batch comes at which step follows from the seed alone, so that training that was killed goes
on where it was. Processes share out each turn, a batch each: two with batches of 8 learn from
the same examples as one with batches of 16.
"""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from headcount.errors import InputError, UsageError
from headcount.subject import Subject
from headcount.tasks.task import Task

__all__ = ["Cursor", "Lessons", "ReadyLessons", "TaskLessons", "Turn"]

#: The batches of one step, one a process; the last turn of an epoch may be short of some.
Turn = list[Any]
#: Epoch, part of the epoch, turn.
Cursor = tuple[int, int, int]

#: Turns that are laid out at a time: rows of one batch are about equally long.
_TURNS = 32


class Lessons(ABC):
    """Turns without end, from any place on."""

    parts: int

    @abstractmethod
    def part(self, epoch: int, number: int) -> list[Turn]:
        """The turns of one part of an epoch."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What must be the same for interrupted training to go on."""

    def turns(self, cursor: Cursor = (0, 0, 0)) -> Iterator[tuple[Turn, Cursor]]:
        """Turns from a place on, each with the place behind it."""
        epoch, part, first = cursor
        while True:
            laid = self.part(epoch, part)
            for place in range(first, len(laid)):
                yield laid[place], (epoch, part, place + 1)
            part, first = part + 1, 0
            if part == self.parts:
                epoch, part = epoch + 1, 0


class TaskLessons(Lessons):
    """The examples of a task, shuffled in each epoch."""

    def __init__(
        self, task: Task, subject: Subject, batch_size: int, seed: int, processes: int = 1
    ) -> None:
        task.check(subject)
        self.task, self.subject, self.seed = task, subject, seed
        self.batch_size, self.processes = batch_size, processes
        self.size = _TURNS * batch_size * processes
        self.parts = -(-len(task) // self.size)

    def part(self, epoch: int, number: int) -> list[Turn]:
        """Some examples, sorted by length into batches, the turns in a random order."""
        order = list(range(len(self.task)))
        random.Random(f"examples {self.seed} {epoch}").shuffle(order)
        chosen = self.task.part(order[number * self.size : (number + 1) * self.size])
        batches = list(chosen.batches(self.subject, self.batch_size))
        if not batches:
            raise InputError(f"{self.task.name} has no text to learn from in {len(chosen)} lines.")
        turns = _dealt(batches, self.processes)
        random.Random(f"turns {self.seed} {epoch} {number}").shuffle(turns)
        return turns

    def describe(self) -> dict[str, Any]:
        """The task and the rows of one step."""
        return {"task": self.task.describe(), "rows": self.batch_size * self.processes}


class ReadyLessons(Lessons):
    """Batches that the caller made, with labels among them, shuffled in each epoch."""

    parts = 1

    def __init__(self, batches: Iterable[Any], seed: int, processes: int = 1) -> None:
        self.batches = list(batches)
        if not self.batches:
            raise InputError("There are no batches to learn from; give one or more.")
        if not all(isinstance(batch, Mapping) and "labels" in batch for batch in self.batches):
            raise UsageError(
                "Batches of your own must be what the model's forward takes, by name, with "
                "'labels' among it; or give a task of hc.tasks."
            )
        self.seed, self.processes = seed, processes

    def part(self, epoch: int, number: int) -> list[Turn]:
        """All batches, dealt out in a random order."""
        order = list(self.batches)
        random.Random(f"batches {self.seed} {epoch}").shuffle(order)
        return _dealt(order, self.processes)

    def describe(self) -> dict[str, Any]:
        """How many batches there are, and the sha256 of what they hold."""
        digest = hashlib.sha256()
        for batch in self.batches:
            for name, value in sorted(batch.items()):
                shown = value.tolist() if isinstance(value, Tensor) else value
                digest.update(f"{name} {shown}\n".encode())
        return {"batches": len(self.batches), "hash": digest.hexdigest()}


def _dealt(batches: Sequence[Any], processes: int) -> list[Turn]:
    """Neighbours together: a turn is what one process would take as one large batch."""
    return [list(batches[start : start + processes]) for start in range(0, len(batches), processes)]
