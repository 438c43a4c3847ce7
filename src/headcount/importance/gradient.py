"""Gradient importance: how fast the loss moves when a head's scale moves.

Michel et al., NeurIPS 2019, section 4.1: I_h = E_x |dL(x)/dxi_h| = E_x |Att_h(x)^T dL/dAtt_h(x)|,
for all heads in one forward and backward a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headcount.columns import Column
from headcount.importance.by_batch import Arrays, by_batch
from headcount.importance.example_sums import ExampleSums
from headcount.importance.gradient_way import Normalize, Way, read_way
from headcount.importance.interrupted import Interrupted
from headcount.importance.origin import origin
from headcount.importance.per_layer import over_layer_norm
from headcount.importance.slopes import Per, slopes
from headcount.importance.token_counts import michels_counts, token_counts
from headcount.journal import Journal
from headcount.models.memory import enough_memory
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tasks.task import Task
from headcount.text.batch import Batch

__all__ = ["GRADIENT", "gradient"]

GRADIENT = Column(
    "gradient",
    meaning="How fast the loss changes with the head's scale: the mean of |dL/dxi|.",
    paper="Michel et al. 2019, section 4.1",
    range=(0, None),
    direction="higher",
    more="more important",
    group="How much it matters",
    format=".3g",
)


def gradient(
    subject: Subject,
    task: Task,
    *,
    per: Per | None = None,
    normalize: Normalize | None = None,
    convention: str = "headcount",
    batch_size: int = 16,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> HeadTable:
    """Score every head by the gradient of the task's loss, with an interval over examples.

    `per` says where the absolute value is taken: of each example's slope (the default, as in the
    paper), each token's (as in the authors' program), or each batch's, which depends on the batch
    size. `normalize="layer"` divides by the l2 norm of the layer, the default of the convention
    "paper". The convention "code" is Michel et al.'s programs, whose figures depend on the batch
    size. Weights are asked for no gradient, and nothing of the model is changed.

    >>> from headcount import tasks
    >>> from headcount.models.load import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> gradient(load("translator", device="cpu"), task)
    HeadTable(144 heads: enc 48, dec 48, cross 48; 1 column: gradient)
    """
    way = read_way(subject, task, per, normalize, convention)
    task.check(subject)
    work = _Work(subject, task, way, batch_size)
    try:
        with slopes(subject, task, way.per) as measure, enough_memory(subject):
            settings = {"convention": convention, **work.settings}
            walk = by_batch(
                "gradient", work.batches(), measure, len(task), settings, journal, progress
            )
            for number, (batch, found) in enumerate(walk):
                work.add(number, batch, found)
    except KeyboardInterrupt as stop:
        raise (Interrupted(work.table()) if work.seen else stop) from None
    return work.table()


@dataclass
class _Work:
    """A gradient score under way."""

    subject: Subject
    task: Task
    way: Way
    batch_size: int
    sums: ExampleSums = field(default_factory=ExampleSums)
    seen: set[int] = field(default_factory=set)

    @property
    def settings(self) -> dict[str, Any]:
        """How it is measured, as provenance and journal keep it."""
        way = self.way
        return {"per": way.per, "normalize": way.normalize, "batch_size": self.batch_size}

    def batches(self) -> Iterator[Batch]:
        """The task's batches; as the authors' programs have them, in the order of the examples."""
        if not self.way.code:
            yield from self.task.batches(self.subject, self.batch_size)
            return
        for start in range(0, len(self.task), self.batch_size):
            part = self.task.part(range(len(self.task))[start : start + self.batch_size])
            for batch in part.batches(self.subject, self.batch_size):
                yield replace(batch, index=[start + number for number in batch.index])

    def add(self, number: int, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""
        unit = [number] * len(batch) if self.way.per == "batch" else batch.index
        scale = 1 / len(batch) if self.way.mean_loss else 1.0
        first = np.array([self._is_first(number) for number in batch.index], dtype=np.float64)
        counts = self._tokens(batch) if self.way.per == "token" else first[:, None]
        self.sums.add(unit, found["slopes"] * scale, counts)

    def _is_first(self, example: int) -> bool:
        """Whether an example was not seen before: its further windows do not count again."""
        before = len(self.seen)
        self.seen.add(example)
        return len(self.seen) > before

    def _tokens(self, batch: Batch) -> np.ndarray:
        return (michels_counts if self.way.code else token_counts)(self.subject, batch)

    def table(self) -> HeadTable:
        """What has been found so far."""
        heads = self.subject.heads
        found = self.sums.interval(absolute=self.way.per != "token")
        value, low, high = (
            over_layer_norm(heads, *found) if self.way.normalize == "layer" else found
        )
        return HeadTable.of(
            heads,
            {"gradient": value},
            [GRADIENT],
            low={"gradient": low},
            high={"gradient": high},
            notes=self._notes(),
            provenance=origin(
                self.subject,
                self.task,
                convention=self.way.convention,
                settings=self.settings,
            ),
        )

    def _notes(self) -> dict[str, str]:
        done, all_ = len(self.seen), len(self.task)
        if done == all_:
            return {}
        return {"gradient": f"interrupted after {done:,} of {all_:,} examples"}
