"""Two ways to run a task with heads ablated: everything anew, or only what changes.

Both work on one batch at a time and give what the metric counts, `[intervention, row, column]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from headcount.errors import ModelError
from headcount.models.site import Site
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.sweeps.intervention import Intervention
from headcount.sweeps.rows import repeated
from headcount.tasks.custom import Custom
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.ablate import Instead, ablated, chosen_heads
from headcount.wiring.course import Course
from headcount.wiring.encoder_once import EncoderOnce
from headcount.wiring.shortcut import Shortcut

__all__ = ["Group", "LongWay", "ShortWay", "SpokenWay"]


@dataclass(frozen=True)
class Group:
    """Interventions that are run on a batch in one go, and journaled together."""

    name: str
    members: tuple[Intervention, ...]
    #: The first site that any of them touches, where that matters.
    site: Site | None = None


class LongWay:
    """Every ablation is a whole run; small batches are shared by several."""

    name = "long"

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        self.subject = subject
        self.task = task
        #: How many examples a forward may have, all ablations together.
        self._rows = rows

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """As many as fit into one run; a task of the caller's own runs the model itself."""
        size = 1 if isinstance(self.task, Custom) else max(1, self._rows // len(batch))
        return [
            Group(interventions[start].name, tuple(interventions[start : start + size]))
            for start in range(0, len(interventions), size)
        ]

    def whole(self, batch: Batch, instead: Instead) -> Floats:
        """One plain evaluation."""
        return marked(self.task, self.subject, batch, 1)[0]

    def prepare(self, batch: Batch, instead: Instead) -> None:
        """Nothing is needed for a run of its own."""

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Nothing hangs on the model between runs."""
        yield

    def without(self, group: Group, batch: Batch, instead: Instead) -> Floats:
        """One evaluation of as many copies of the batch as there are ablations."""
        chosen = _chosen(group.members, self.subject)
        copies = repeated(batch, len(chosen))
        by_row = chosen[0] if len(chosen) == 1 else _by_row(chosen, copies)
        with ablated(self.subject, by_row, instead):
            return marked(self.task, self.subject, copies, len(chosen), group.members)


class ShortWay(LongWay):
    """Only what comes after the first ablated head runs again; see `wiring.shortcut`."""

    name = "short"

    def __init__(
        self, subject: Subject, task: Task, rows: int, course: Course, shortcut: Shortcut
    ) -> None:
        super().__init__(subject, task, rows)
        self._course = course
        self._shortcut = shortcut

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """By the first site that they touch."""
        by_site: dict[Site, list[Intervention]] = {}
        for one in interventions:
            sites = [self.subject.anatomy.site(head.stack, head.layer) for head in one.heads]
            by_site.setdefault(min(sites, key=self._course.order.__getitem__), []).append(one)
        return [
            Group(f"{site.stack}.{site.layer}", tuple(members), site)
            for site, members in by_site.items()
        ]

    def whole(self, batch: Batch, instead: Instead) -> Floats:
        """One plain evaluation, of which everything is kept that the others need."""
        return self._shortcut.whole(partial(super().whole, batch, instead), instead)

    def prepare(self, batch: Batch, instead: Instead) -> None:
        """The same for another stand-in."""
        self.whole(batch, instead)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Within the block the model can be cut short."""
        with self._shortcut.opened():
            yield

    def without(self, group: Group, batch: Batch, instead: Instead) -> Floats:
        """As many forwards from the site on as it takes."""
        assert group.site is not None
        size = max(1, self._rows // len(batch))
        return np.concatenate(
            [
                self._some(group.members[start : start + size], batch, group.site)
                for start in range(0, len(group.members), size)
            ]
        )

    def _some(self, members: tuple[Intervention, ...], batch: Batch, site: Site) -> Floats:
        copies = repeated(batch, len(members))

        def run() -> Floats:
            return marked(self.task, self.subject, copies, len(members), members)

        return self._shortcut.again(run, site, _chosen(members, self.subject))


class SpokenWay(LongWay):
    """For models that speak step by step: whole runs, but for the encoder where it is untouched."""

    name = "spoken"

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        super().__init__(subject, task, rows)
        self._encoder = EncoderOnce(subject)

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """Those that touch the encoder and those that do not, apart."""
        touching = [one for one in interventions if _touches_encoder(one)]
        others = [one for one in interventions if not _touches_encoder(one)]
        return [*super().groups(touching, batch), *super().groups(others, batch)]

    def whole(self, batch: Batch, instead: Instead) -> Floats:
        """One plain evaluation, after the encoder has run."""
        self.prepare(batch, instead)
        return self._encoder.reuse(partial(super().whole, batch, instead), copies=1)

    def prepare(self, batch: Batch, instead: Instead) -> None:
        """Run the encoder; what it gives is the same for every stand-in."""
        self._encoder.read(batch.to(self.subject.device).inputs)

    def without(self, group: Group, batch: Batch, instead: Instead) -> Floats:
        """Whole runs, or runs of the decoder alone."""
        if _touches_encoder(group.members[0]):
            return super().without(group, batch, instead)
        run = partial(super().without, group, batch, instead)
        return self._encoder.reuse(run, copies=len(group.members))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Within the block the encoder's output is at hand."""
        with self._encoder.opened():
            yield


def marked(
    task: Task,
    subject: Subject,
    batch: Batch,
    copies: int,
    members: Sequence[Intervention] = (),
) -> Floats:
    """What the metric counts in the model's answers, `[copy, row, column]`."""
    marks = task.mark(task.answer(subject, batch), batch)
    try:
        task.check_numbers(marks, batch, subject)
    except ModelError as error:
        if not members:
            raise
        names = ", ".join(one.name for one in members)
        raise ModelError(f"With heads ablated ({names}): {error}") from error
    return marks.statistics.reshape(copies, -1, marks.statistics.shape[1])


def _chosen(members: Sequence[Intervention], subject: Subject) -> Tensor:
    """True for every head that an intervention ablates, `[intervention, head]`."""
    return torch.stack([chosen_heads(one.heads, subject.heads) for one in members])


def _by_row(chosen: Tensor, copies: Batch) -> Tensor:
    rows = len(next(iter(copies.inputs.values())))
    return chosen.repeat_interleave(rows // len(chosen), dim=0)


def _touches_encoder(one: Intervention) -> bool:
    return any(head.stack == "enc" for head in one.heads)
