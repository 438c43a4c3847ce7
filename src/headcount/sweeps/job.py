"""A sweep at work: what is not in the ledger yet is run, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from headcount.progress import Progress
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.sweeps.encoded import Examples
from headcount.sweeps.forecast import forecast
from headcount.sweeps.gather import done_examples, outcome_of
from headcount.sweeps.interrupted import SweepInterrupted
from headcount.sweeps.intervention import Intervention, Mode
from headcount.sweeps.ledger import Ledger
from headcount.sweeps.result import Sweep
from headcount.sweeps.ways import Group, LongWay, ShortWay
from headcount.tasks.outcome import Outcome
from headcount.tasks.task import Task
from headcount.wiring.ablate import Instead

__all__ = ["Job"]

WHOLE = "whole"


@dataclass
class Job:
    """Everything a sweep needs, and what it has counted: by name and batch, `[row, column]`."""

    subject: Subject
    task: Task
    interventions: Sequence[Intervention]
    examples: Examples
    way: LongWay
    ledger: Ledger
    instead: Mapping[Mode, Callable[[int], Instead]]
    notes: list[str]
    _counted: dict[str, dict[int, Floats]] = field(default_factory=dict)
    _finished: list[int] = field(default_factory=list)
    _done: int = 0
    _progress: Progress | None = None
    _announce: Callable[[str], None] | None = None

    def run(
        self, progress: Progress | None = None, announce: Callable[[str], None] | None = None
    ) -> Sweep:
        """All batches; after Ctrl-C what there is goes along with `SweepInterrupted`."""
        self._progress, self._announce = progress, announce
        try:
            for number in self.examples.order:
                self._batch(number)
                self._finished.append(number)
        except KeyboardInterrupt:
            if not done_examples(self.examples.batches, self._finished):
                raise
            raise SweepInterrupted(self.result()) from None
        return self.result()

    def result(self) -> Sweep:
        """What was found on all examples that are done."""
        batches = self.examples.batches
        numbers = done_examples(batches, self._finished)
        task = self.task if len(numbers) == len(self.task) else self.task.part(numbers)

        def outcome(name: str, notes: Sequence[str] = ()) -> Outcome:
            counted = {number: self._counted[name][number] for number in self._finished}
            return outcome_of(task, self.subject, batches, counted, numbers, notes)

        return Sweep(
            task=task,
            interventions=tuple(self.interventions),
            baseline=outcome(WHOLE, self.examples.notes),
            outcomes=tuple(outcome(one.name) for one in self.interventions),
            examples=len(self.task),
            fast=isinstance(self.way, ShortWay),
            notes=(*self.examples.notes, *self.notes),
        )

    def _batch(self, number: int) -> None:
        """Everything on one batch that is not there yet."""
        batch, ledger = self.examples.batches[number], self.ledger
        open_one = _Open(self, number)
        whole = ledger.get(_unit(number, WHOLE), lambda: self._timed(open_one.whole, len(batch)))
        self._count(WHOLE, number, whole[0])
        for mode, members in self._by_mode().items():
            for group in self.way.groups(members, batch):
                run = partial(open_one.without, mode, group)
                found = ledger.get(_unit(number, f"{mode} {group.name}"), run)
                for one, counted in zip(group.members, found, strict=True):
                    self._count(one.name, number, counted)
        for one in self.interventions:
            if not one.heads:
                self._count(one.name, number, whole[0])

    def _by_mode(self) -> dict[Mode, list[Intervention]]:
        """Interventions that ablate anything, by their mode."""
        by_mode: dict[Mode, list[Intervention]] = {}
        for one in self.interventions:
            if one.heads:
                by_mode.setdefault(one.mode, []).append(one)
        return by_mode

    def _count(self, name: str, number: int, counted: Floats) -> None:
        self._counted.setdefault(name, {})[number] = counted
        if self._progress is not None:
            self._done += len(self.examples.batches[number])
            each = sum(map(len, self.examples.batches))
            self._progress(self._done, each * (len(self.interventions) + 1))

    def _timed(self, run: Callable[[], Floats], examples: int) -> Floats:
        """The first whole run, on the clock where everything must be run as often."""
        if self._announce is None or isinstance(self.way, ShortWay):
            return run()
        announce, self._announce = self._announce, None
        begun = time.perf_counter()
        counted = run()
        seconds = time.perf_counter() - begun
        announce(forecast(seconds, examples, len(self.task), len(self.interventions)))
        return counted


class _Open:
    """A batch that is being worked on: what stands in for heads, and whose whole run is kept."""

    def __init__(self, job: Job, number: int) -> None:
        self._job = job
        self._number = number
        self._batch = job.examples.batches[number]
        self._instead: dict[Mode, Instead] = {}
        self._kept: Mode | None = None

    def whole(self) -> Floats:
        """The model as it is, `[1, row, column]`; kept for the first mode."""
        mode = next(iter(self._job.instead))
        self._kept = mode
        return self._job.way.whole(self._batch, self._of(mode))[None]

    def without(self, mode: Mode, group: Group) -> Floats:
        """The interventions of a group, `[intervention, row, column]`."""
        if self._kept != mode:
            self._job.way.prepare(self._batch, self._of(mode))
            self._kept = mode
        return self._job.way.without(group, self._batch, self._of(mode))

    def _of(self, mode: Mode) -> Instead:
        if mode not in self._instead:
            self._instead[mode] = self._job.instead[mode](self._number)
        return self._instead[mode]


def _unit(number: int, what: str) -> str:
    return f"batch {number} {what}"
