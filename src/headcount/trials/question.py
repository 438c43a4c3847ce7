"""A question: what is read off every head's map on inputs that were made for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Protocol

import pandas as pd

from headcount.columns import Column
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.trials.marks import Marks
from headcount.wiring import Needs, Sighting, tap

__all__ = ["Finding", "Findings", "Measure", "Question", "Trial", "ask"]


@dataclass
class Finding:
    """What a trial found for one column: marks of the heads, and why others have none."""

    column: Column
    #: What the baseline of the marks is, in words: "uniform attention".
    baseline: str
    marks: Marks = field(default_factory=Marks)
    #: Stack to the reason why its heads are not asked.
    silent: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A figure of the whole model in a trial: whether it can do the thing at all."""

    trial: str
    name: str
    value: float
    low: float
    high: float
    n: int


@dataclass
class Findings:
    """Everything that one trial found."""

    columns: list[Finding]
    measures: list[Measure] = field(default_factory=list)
    details: dict[str, pd.DataFrame] = field(default_factory=dict)


class Question(Protocol):
    """Reads sightings and marks the heads."""

    @property
    def needs(self) -> Needs:
        """What it asks of each map."""

    def update(self, sighting: Sighting) -> None:
        """Mark the heads of one site on one batch."""


class Trial(Protocol):
    """A dataclass whose fields are its sizes, called on a subject."""

    @property
    def name(self) -> str:
        """The word for it everywhere."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it fills."""

    def unfit(self, subject: Subject) -> str | None:
        """Why the trial means nothing for a subject; None where it can be run."""

    def __call__(self, subject: Subject) -> Findings:
        """Run it."""


def ask(
    subject: Subject,
    batches: Iterable[Batch],
    questions: Sequence[Question],
    stacks: Collection[str] | None = None,
) -> None:
    """Run every batch and put every question to every site of it."""
    needs = reduce(or_, (question.needs for question in questions), Needs())

    def receive(sighting: Sighting) -> None:
        for question in questions:
            question.update(sighting)

    with tap(subject, needs, stacks=stacks) as watch:
        for batch in batches:
            watch(batch, receive=receive)
