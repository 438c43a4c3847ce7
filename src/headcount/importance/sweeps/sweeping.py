"""The sweep: a task under many interventions, batch by batch, each finished unit on the disk."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.importance.sweeps.interventions import (
    ExampleRows,
    Group,
    Intervention,
    LongWay,
    Mode,
    StandIn,
    Trial,
    check_any_left,
    check_interventions,
    choose_way,
    picked,
    stand_in,
)
from headcount.models import Subject, enough_memory, eval_mode
from headcount.records import (
    Answer,
    Engine,
    EngineOptions,
    Journal,
    Ledger,
    MakeWorker,
    Piece,
    Steps,
    Worker,
    announce,
    engine_of,
    hash_strings,
    working,
)
from headcount.stats import Floats
from headcount.text import Batch, Encoded
from headcount.wiring import Instead

# --- The examples of a sweep: encoded once, run many times --------------------------------------


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


def encoded(task: tasks.Task, subject: Subject, batch_size: int) -> Examples:
    """Encode all examples; those without a token are named before anything runs."""
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


# --- From units to outcomes ---------------------------------------------------------------------


def done_examples(batches: Sequence[Batch], finished: Sequence[int]) -> list[int]:
    """The examples of which every window is in a finished batch."""
    wanted = Counter(number for batch in batches for number in batch.index)
    found = Counter(number for place in finished for number in batches[place].index)
    return sorted(number for number in wanted if found[number] == wanted[number])


def outcome_of(
    task: tasks.Task,
    subject: Subject,
    batches: Sequence[Batch],
    counted: Mapping[int, Floats],
    numbers: Sequence[int],
    notes: Sequence[str],
) -> tasks.Outcome:
    """The outcome on some examples, from what was counted in each batch, `[row, column]`.

    `task` is the task on those examples.
    """
    place = {number: place for place, number in enumerate(numbers)}
    sheet = tasks.Sheet(len(numbers))
    for number in sorted(counted):
        rows = [row for row, one in enumerate(batches[number].index) if one in place]
        index = [place[batches[number].index[row]] for row in rows]
        if rows:
            sheet.add(index, tasks.Marks(counted[number][rows], []))
    return task.outcome(sheet, subject, notes)


# --- What a sweep found -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The outcomes of a sweep, all on the same examples."""

    #: What was measured, on the examples that were done.
    task: tasks.Task
    interventions: tuple[Intervention, ...]
    baseline: tasks.Outcome
    #: One for each intervention, in their order.
    outcomes: tuple[tasks.Outcome, ...]
    #: How many examples the task has; more than were done where the sweep was broken off.
    examples: int
    #: Whether only what changes was run again, or everything.
    fast: bool
    #: What a reader should know, e.g. why the long way was taken.
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return (
            f"Sweep({len(self)} interventions, {self.baseline.name} over {len(self.baseline):,} "
            f"of {self.examples:,} examples)"
        )

    @property
    def complete(self) -> bool:
        """Whether all examples were done."""
        return len(self.baseline) == self.examples

    def outcome(self, name: str) -> tasks.Outcome:
        """The outcome of an intervention by its name."""
        names = [one.name for one in self.interventions]
        return self.outcomes[names.index(name)]

    def losses(self, **options: Any) -> tasks.Comparison:
        """What each intervention costs, tested against the model as it is and corrected together.

        Higher is worse whatever the metric is: more loss, less accuracy. See `tasks.compare`.
        """
        found = tasks.compare_outcomes(self.outcomes, self.baseline, **options)
        if not self.baseline.higher_is_better:
            return found
        return found._replace(value=-found.value, low=-found.high, high=-found.low)

    def costs(self) -> list[float]:
        """The same differences without any test."""
        sign = -1 if self.baseline.higher_is_better else 1
        return [sign * (one.value - self.baseline.value) for one in self.outcomes]

    def some(self, places: Sequence[int]) -> Sweep:
        """Some of the interventions, by their places."""
        return replace(
            self,
            interventions=tuple(self.interventions[place] for place in places),
            outcomes=tuple(self.outcomes[place] for place in places),
        )

    def part(self, numbers: Sequence[int]) -> Sweep:
        """The same on some of its examples: choose by one half, judge by the other."""
        task = self.task.part(numbers)

        def cut(outcome: tasks.Outcome) -> tasks.Outcome:
            about = {**outcome.provenance, "task": task.describe()}
            return replace(outcome, statistics=outcome.statistics[list(numbers)], provenance=about)

        return replace(
            self,
            task=task,
            baseline=cut(self.baseline),
            outcomes=tuple(map(cut, self.outcomes)),
            examples=len(numbers),
        )


# --- How long a sweep will take, said before it begins ------------------------------------------


def forecast(seconds: float, examples: int, total: int, interventions: int) -> str:
    """One sentence, from the time that some of the examples took.

    >>> forecast(6.0, examples=16, total=500, interventions=144)
    '145 evaluations of 500 examples, about 7 h 33 min.'
    """
    whole = seconds / examples * total * (interventions + 1)
    return f"{interventions + 1} evaluations of {total:,} examples, about {in_words(whole)}."


def in_words(seconds: float) -> str:
    """A duration as people say it.

    >>> in_words(7.2), in_words(200), in_words(90000)
    ('7 s', '3 min', '25 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest and hours < 24 else f"{hours} h"


# --- Ctrl-C in the middle of a sweep: what was measured so far goes along -----------------------


class SweepInterrupted(KeyboardInterrupt):
    """The user broke a sweep off; `sweep` holds every intervention on the examples done so far."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__()
        self.sweep = sweep


# --- A sweep at work: what is not in the ledger yet is run, batch by batch ----------------------

WHOLE = "whole"
#: Units of one batch that a worker elsewhere is given at once: it runs the whole model first.
_TOGETHER = 8


#: How a unit of a batch is run, and the names of what it counts.
Unit = tuple[Callable[["_Open"], Floats], list[str]]


@dataclass
class SweepJob:
    """Everything a sweep needs; what it has counted is in its ledger."""

    subject: Subject
    task: tasks.Task
    interventions: Sequence[Intervention]
    examples: Examples
    way: LongWay
    ledger: Ledger
    instead: Mapping[Mode, StandIn]
    notes: list[str]
    _steps: Steps = field(default_factory=Steps)
    _foretold: bool = False
    _begun: float = 0.0
    _opened: tuple[Any, _Open] | None = None
    _by_batch: dict[int, dict[str, Unit]] = field(default_factory=dict)

    def run(self, name: str, engine: Engine, make: MakeWorker | None = None) -> Sweep:
        """All batches; after Ctrl-C `SweepInterrupted` carries what was measured.

        Workers of a remote `engine` each hold such a job (`make`).
        """
        # Where everything must be run as often as the whole, the first run tells how long that is.
        self._foretold = make is not None or self.way.keeps
        given: dict[int, ExampleRows] = {}
        pieces = self._pieces(1 if make is None else _TOGETHER, given)
        each = sum(map(len, self.examples.batches))
        shown = working(name.capitalize(), each * (len(self.interventions) + 1))
        answering = closing(engine.run(make or self._here, pieces))  # type: ignore[type-var]
        try:
            with shown as self._steps, answering as answers:
                for answer in answers:
                    self._take(given.pop(answer.number), answer)
        except KeyboardInterrupt:
            if not done_examples(self.examples.batches, self._finished()):
                raise
            raise SweepInterrupted(self.result()) from None
        return self.result()

    def result(self) -> Sweep:
        """What was found on all examples that are done."""
        batches, finished = self.examples.batches, self._finished()
        aside = {
            batch.index[row]: f"Example {batch.index[row] + 1} of {self.task.name} was set "
            f"aside: {why}"
            for number, batch in enumerate(batches)
            for row, why in self._aside(number).items()
        }
        done = done_examples(batches, finished)
        numbers = [number for number in done if number not in aside]
        check_any_left(numbers, aside, self.task)
        task = self.task if len(numbers) == len(self.task) else self.task.part(numbers)
        counted = self._counted(finished)

        def outcome(name: str, notes: Sequence[str] = ()) -> tasks.Outcome:
            return outcome_of(task, self.subject, batches, counted[name], numbers, notes)

        return Sweep(
            task=task,
            interventions=tuple(self.interventions),
            baseline=outcome(WHOLE, self.examples.notes),
            outcomes=tuple(outcome(one.name) for one in self.interventions),
            examples=len(self.task) - len(aside),
            fast=self.way.keeps,
            notes=(*self.examples.notes, *self.notes, *aside.values()),
        )

    def _pieces(self, together: int, given: dict[int, ExampleRows]) -> Iterator[Piece]:
        """The units that are not there yet, of the rows that are not set aside."""
        numbers = itertools.count()
        for number in self.examples.order:
            units = list(self._units(number))
            left = [unit for unit in units if unit not in self.ledger]
            self._tell(number, [unit for unit in units if unit in self.ledger])
            for at in range(0, len(left), together):
                aside = self._aside(number)
                rows = [
                    row for row in range(len(self.examples.batches[number])) if row not in aside
                ]
                some = left[at : at + together]
                if not rows:
                    self._tell(number, some)
                    continue
                # A number of its own: answered pieces leave `given` while others are out.
                place = next(numbers)
                given[place] = one = ExampleRows((number, some), rows)
                self._begun = time.perf_counter()
                yield Piece(place, one)

    def _take(self, asked: ExampleRows, answer: Answer) -> None:
        """Write down what some units counted; examples that the model breaks on are NaN."""
        number, units = asked.of
        if not self._foretold:
            self._foretold = True
            seconds = time.perf_counter() - self._begun
            size = len(self.examples.batches[number])
            announce(forecast(seconds, size, len(self.task), len(self.interventions)))
        for lost in answer.lost:
            self.ledger[_aside(number, asked.rows[lost.place])] = lost.why
        for unit in units if answer.results else ():
            shape = answer.results[0][2][unit].shape
            full = np.full((shape[0], len(self.examples.batches[number]), shape[2]), np.nan)
            for start, count, counts in answer.results:
                full[:, asked.rows[start : start + count]] = counts[unit]
            self.ledger[unit] = full
        self._tell(number, units)

    def work(self, asked: Any) -> dict[str, Floats]:
        """What a worker does: the counts of some units on some rows of a batch."""
        number, units = asked.of
        runs = self._units(number)
        key = (number, asked.rows)
        if self._opened is None or self._opened[0] != key:
            self._opened = key, _Open(self, number, asked.rows)
        opened, self._opened = self._opened[1], None  # what a run breaks off is not used again
        counts = {unit: runs[unit][0](opened) for unit in units}
        self._opened = key, opened
        return counts

    @contextmanager
    def _here(self) -> Iterator[Worker]:
        yield self.work

    def _units(self, number: int) -> dict[str, Unit]:
        """The units of a batch, by the names that the ledger has."""
        if number not in self._by_batch:
            bare = [one.name for one in self.interventions if not one.heads]
            units: dict[str, Unit] = {_unit(number, WHOLE): (_Open.whole, [WHOLE, *bare])}
            for mode in dict.fromkeys(one.mode for one in self.interventions if one.heads):
                members = [one for one in self.interventions if one.heads and one.mode == mode]
                for group in self.way.groups(members, self.examples.batches[number]):
                    run = partial(_without, mode=mode, group=group)
                    names = [one.name for one in group.members]
                    units[_unit(number, f"{mode} {group.name}")] = run, names
            self._by_batch[number] = units
        return self._by_batch[number]

    def _aside(self, number: int) -> dict[int, str]:
        """The rows of a batch that are set aside, and why."""
        rows = range(len(self.examples.batches[number]))
        units = {row: _aside(number, row) for row in rows}
        return {row: self.ledger[unit] for row, unit in units.items() if unit in self.ledger}

    def _finished(self) -> list[int]:
        """The batches of which every unit is done, or every row is set aside."""
        return [
            number
            for number in self.examples.order
            if all(unit in self.ledger for unit in self._units(number))
            or len(self._aside(number)) == len(self.examples.batches[number])
        ]

    def _counted(self, finished: Sequence[int]) -> dict[str, dict[int, Floats]]:
        """What was counted, by name and batch, `[row, column]`."""
        counted: dict[str, dict[int, Floats]] = {WHOLE: {}}
        counted |= {one.name: {} for one in self.interventions}
        for number in finished:
            for unit, (_, names) in self._units(number).items():
                if unit not in self.ledger:
                    continue  # all rows are set aside
                counts = self.ledger[unit]
                for place, name in enumerate(names):
                    counted[name][number] = counts[place % len(counts)]  # those of no heads: whole
        return counted

    def _tell(self, number: int, units: Sequence[str]) -> None:
        """How far it is: examples, times the interventions that are done on them."""
        runs, size = self._units(number), len(self.examples.batches[number])
        for _ in (name for unit in units for name in runs[unit][1]):
            self._steps(size)


class _Open:
    """A batch that is being worked on: what stands in for heads, and whose whole run is kept."""

    def __init__(self, job: SweepJob, number: int, rows: Sequence[int]) -> None:
        self._job = job
        self._where = number, rows
        self._batch = picked(job.examples.batches[number], rows)
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
            self._instead[mode] = self._job.instead[mode](*self._where, self._batch)
        return self._instead[mode]


def _without(opened: _Open, mode: Mode, group: Group) -> Floats:
    return opened.without(mode, group)


def _unit(number: int, what: str) -> str:
    return f"batch {number} {what}"


def _aside(number: int, row: int) -> str:
    return _unit(number, f"set aside {row}")


# --- What must be equal for the units of an old sweep to count in a new one ---------------------


def fingerprint(
    subject: Subject,
    task: tasks.Task,
    interventions: Sequence[Intervention],
    batches: Sequence[Batch],
    reference: tasks.Task | None,
) -> dict[str, Any]:
    """Model, data and interventions, by names that an error can use."""
    about = task.describe()
    heads = [f"{one.name}: {one.mode} {','.join(map(str, one.heads))}" for one in interventions]
    return {
        "weights": subject.weights_hash,
        "device": subject.device.type,
        "data": about.pop("hash"),
        **{f"task {key}": value for key, value in about.items() if key != "data"},
        "mode": ", ".join(dict.fromkeys(one.mode for one in interventions)),
        "first intervention": interventions[0].name,
        "interventions": f"{len(heads)} ({hash_strings(heads)})",
        "reference": None if reference is None else reference.hash,
        "tokens": _fingerprint_tokens(batches),
    }


def _fingerprint_tokens(batches: Sequence[Batch]) -> str:
    """A hash of what the model is given: another tokenizer gives other tokens."""
    digest = hashlib.sha256()
    for batch in batches:
        for name, tensor in sorted(batch.inputs.items()):
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            plain = tensor.cpu().contiguous().reshape(-1)  # numpy has no bfloat16
            digest.update(plain.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


# --- What a sweep measures: the task's loss, or the task's own metric ---------------------------

#: "loss" is teacher-forced; "task" is the metric that the task has.
Measured = Literal["loss", "task"]


def sweep_task(task: tasks.Task, metric: Measured | None = None) -> tasks.Task:
    """The task with the metric of a sweep: by default its loss, where it has one.

    >>> from headcount.tasks import translation
    >>> sweep_task(translation([("Rain fell.", "Regen fiel.")]))
    Translation('examples in hand', 1 examples, loss)
    """
    if metric not in (None, "loss", "task"):
        raise UsageError(f"The metric of a sweep is 'loss' or 'task', not {metric!r}.")
    if metric == "task" or task.metric.name == "loss":
        return task
    if isinstance(task, tasks.Custom):
        return _custom(task, metric)
    return replace(
        task, metric=tasks.LOSS if isinstance(task, tasks.TokenTask) else tasks.MEAN_LOSS
    )


def _custom(task: tasks.Custom, metric: Measured | None) -> tasks.Task:
    """A custom task's losses as its scores; without losses, the scores that it has."""
    losses = task.losses
    if losses is None:
        if metric is None:
            return task
        raise UsageError(
            "This custom task has no loss; give custom(..., loss=function), or measure its own "
            "score with metric='task'."
        )

    def loss(subject: Subject, examples: list[Any]) -> Sequence[float]:
        return [float(number) for number in losses(subject, examples)]

    return replace(task, metric=tasks.MEAN_LOSS, score=loss)


# --- The sweep ----------------------------------------------------------------------------------


def sweep(
    subject: Subject,
    task: tasks.Task,
    interventions: Sequence[Intervention],
    *,
    metric: Measured | None = None,
    batch_size: int = 16,
    reference: tasks.Task | None = None,
    seed: int = 0,
    journal: Journal | None = None,
    name: str = "sweep",
    fast: bool = True,
    engine: Engine | EngineOptions | str | None = None,
) -> Sweep:
    """Evaluate a task under every intervention; nothing of the model is changed.

    `metric` is "loss" (teacher-forced, the default where the task has a loss) or "task" for the
    task's own. `batch_size` is the number of examples of one forward, all interventions that
    share it together. `reference` are the texts for the mode mean (the task's own by default),
    `seed` chooses donors for the mode resample.

    With a `journal` every finished unit is on the disk at once, under `name`: the same call goes
    on where the last one ended, another one is refused. Ctrl-C raises `SweepInterrupted` with
    what was done. With `fast=False` every intervention is a whole run. Units are done in this
    process, or by the workers of an `engine`, with the same counts. An example that the model
    breaks on is set aside and named in the notes.
    """
    task = sweep_task(task, metric)
    check_interventions(interventions, subject.heads)
    where = engine_of(engine)
    how: dict[str, Any] = {"batch_size": batch_size, "reference": reference}
    how |= {"seed": seed, "fast": fast}
    model = where.pack(subject)  # before anything hangs on it
    with _job(subject, task, interventions, **how) as job:
        way = job.way.name
        job.ledger = Ledger(journal, name)
        if journal is not None:
            settings = {"batch_size": batch_size, "seed": seed, "way": way}
            about = fingerprint(subject, task, interventions, job.examples.batches, reference)
            job.ledger.begin(settings | about)
        make = partial(_worker, model, task, interventions, way, **how) if where.remote else None
        return job.run(name, where, make)


@contextmanager
def _job(
    subject: Subject,
    task: tasks.Task,
    interventions: Sequence[Intervention],
    *,
    batch_size: int,
    reference: tasks.Task | None,
    seed: int,
    fast: bool,
) -> Iterator[SweepJob]:
    """Within the block a sweep can be run: examples are encoded, and the way is chosen."""
    examples = encoded(task, subject, batch_size)
    with enough_memory(subject), eval_mode(subject.model), torch.no_grad():
        notes: list[str] = []
        instead = {
            mode: stand_in(mode, subject, task, examples.batches, reference, seed, notes)
            for mode in dict.fromkeys(one.mode for one in interventions)
        }
        trials = _trials(examples.batches, next(iter(instead.values())))
        way, why = choose_way(subject, task, trials, rows=batch_size, fast=fast)
        ledger = Ledger(None, "")
        notes += why
        job = SweepJob(subject, task, interventions, examples, way, ledger, instead, notes)
        with way.opened():
            yield job


def _trials(batches: Sequence[Batch], stand_in: StandIn) -> Iterator[Trial]:
    """Two rows at a time, of the shortest batch first."""
    lengths = [max((one.shape[-1] for one in each.inputs.values()), default=0) for each in batches]
    for number in sorted(range(len(batches)), key=lengths.__getitem__):
        for start in range(0, len(batches[number]), 2):
            rows = range(len(batches[number]))[start : start + 2]
            trial = picked(batches[number], rows)
            yield trial, partial(stand_in, number, rows, trial)


@contextmanager
def _worker(
    subject_of: Callable[[], Subject],
    task: tasks.Task,
    interventions: Sequence[Intervention],
    way: str,
    **how: Any,
) -> Iterator[Worker]:
    """A job of its own in another process; it must run the model as the first one does."""
    with _job(subject_of(), task, interventions, **how) as job:
        if job.way.name != way:
            raise ModelError(
                f"A worker runs {job.subject.name} the {job.way.name} way, and this process the "
                f"{way} one, so their numbers would differ; use the same devices and packages "
                f"everywhere. {' '.join(job.notes)}"
            )
        yield job.work
