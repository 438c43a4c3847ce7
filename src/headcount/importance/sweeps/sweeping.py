"""The sweep: a task under many interventions, batch by batch, each finished unit on the disk."""

from __future__ import annotations

import hashlib
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
from headcount.errors import HeadcountError, InputError, ModelError, UsageError
from headcount.importance.sweeps.interventions import (
    Intervention,
    Mode,
    check_interventions,
    one_by_one,
    picked,
)
from headcount.importance.sweeps.ways import Group, LongWay, ShortWay, StandIn, choose_way, prepared
from headcount.models import Subject, carried, enough_memory, eval_mode
from headcount.records import (
    Engine,
    EngineOptions,
    Journal,
    JournaledCounts,
    MakeWorker,
    Piece,
    Progress,
    Worker,
    engine_of,
    hash_strings,
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

WHOLE, _ASIDE = "whole", "set aside"
#: Units of one batch that a worker is given at once.
_TOGETHER = 8


@dataclass
class SweepJob:
    """Everything a sweep needs, and what it has counted: by name and batch, `[row, column]`."""

    subject: Subject
    task: tasks.Task
    interventions: Sequence[Intervention]
    examples: Examples
    way: LongWay
    ledger: JournaledCounts
    instead: Mapping[Mode, StandIn]
    notes: list[str]
    _counted: dict[str, dict[int, Floats]] = field(default_factory=dict)
    _finished: list[int] = field(default_factory=list)
    _done: int = 0
    _progress: Progress | None = None
    _announce: Callable[[str], None] | None = None

    def run(
        self,
        progress: Progress | None = None,
        announce: Callable[[str], None] | None = None,
        engine: Engine | None = None,
        make: MakeWorker | None = None,
    ) -> Sweep:
        """All batches; after Ctrl-C what there is goes along with `SweepInterrupted`.

        Workers of a remote `engine` do all units first, each holding such a job (`make`).
        """
        self._progress, self._announce = progress, announce
        try:
            if engine is not None and make is not None:
                self._elsewhere(engine, make)
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
        # The examples that were set aside, with a sentence each.
        aside = {
            batch.index[int(row)]: (
                f"Example {batch.index[int(row)] + 1} of {self.task.name} was set aside: {why}"
            )
            for number, batch in enumerate(self.examples.batches)
            for row, why in self.ledger.noted(_unit(number, _ASIDE)).items()
        }
        done = done_examples(batches, self._finished)
        numbers = [number for number in done if number not in aside]
        task = self.task if len(numbers) == len(self.task) else self.task.part(numbers)

        def outcome(name: str, notes: Sequence[str] = ()) -> tasks.Outcome:
            counted = {number: self._counted[name][number] for number in self._finished}
            return outcome_of(task, self.subject, batches, counted, numbers, notes)

        return Sweep(
            task=task,
            interventions=tuple(self.interventions),
            baseline=outcome(WHOLE, self.examples.notes),
            outcomes=tuple(outcome(one.name) for one in self.interventions),
            examples=len(self.task) - len(aside),
            fast=isinstance(self.way, ShortWay),
            notes=(*self.examples.notes, *self.notes, *aside.values()),
        )

    def _batch(self, number: int) -> None:
        """Everything on one batch that is not there yet."""
        batch, ledger = self.examples.batches[number], self.ledger
        open_one = _Open(self, number, batch)

        def timed() -> Floats:
            # The first whole run, on the clock where everything must be run as often.
            if self._announce is None or isinstance(self.way, ShortWay):
                return self._sound(open_one, number, _Open.whole)
            announce, self._announce = self._announce, None
            begun = time.perf_counter()
            counted = self._sound(open_one, number, _Open.whole)
            seconds = time.perf_counter() - begun
            announce(forecast(seconds, len(batch), len(self.task), len(self.interventions)))
            return counted

        whole = ledger.get(_unit(number, WHOLE), timed)
        self._count(WHOLE, number, whole[0])
        for unit, mode, group in self._units(number):
            run = partial(self._sound, open_one, number, partial(_without, mode=mode, group=group))
            found = ledger.get(unit, run)
            for one, counted in zip(group.members, found, strict=True):
                self._count(one.name, number, counted)
        for one in self.interventions:
            if not one.heads:
                self._count(one.name, number, whole[0])

    def _units(self, number: int) -> list[tuple[str, Mode, Group]]:
        """The units of a batch besides the whole model, by the names that the ledger has."""
        return [
            (_unit(number, f"{mode} {group.name}"), mode, group)
            for mode, members in self._by_mode().items()
            for group in self.way.groups(members, self.examples.batches[number])
        ]

    # -- poisoned examples --

    def _sound(self, opened: _Open, number: int, what: Callable[[_Open], Floats]) -> Floats:
        """What a unit counts; examples that the model breaks on are set aside, as NaN."""
        batch, aside = self.examples.batches[number], self.ledger.noted(_unit(number, _ASIDE))
        if not aside:
            try:
                return what(opened)
            except HeadcountError:
                raise
            except Exception:
                _, broken = one_by_one(lambda one: what(_Open(self, number, one)), batch)
                if not broken or len(broken) == len(batch) or "resample" in self._by_mode():
                    # No single example is to blame, or one whose donor would be missing.
                    raise
                aside = {str(row): why for row, why in broken.items()}
                self.ledger.note(_unit(number, _ASIDE), aside)
        good = [row for row in range(len(batch)) if str(row) not in aside]
        found = what(_Open(self, number, picked(batch, good)))
        full = np.full((len(found), len(batch), found.shape[2]), np.nan)
        full[:, good] = found
        return full

    # -- workers elsewhere --

    def _elsewhere(self, engine: Engine, make: MakeWorker) -> None:
        """Have all units that are not there yet done by workers, and write them down.

        An example that no worker survives is set aside, and the rest is done without it.
        """
        while (lost := self._by_workers(engine, make)) is not None:
            number, units, why = lost
            # The rows of a batch that no worker survives by themselves either, and why.
            batch, found = self.examples.batches[number], dict[str, str]()
            if not self.ledger.noted(_unit(number, _ASIDE)) and "resample" not in self._by_mode():
                rows = range(len(batch))
                others = [{str(other): "" for other in rows if other != row} for row in rows]
                jobs = [Piece(row, [(number, units, others[row])]) for row in rows]
                answers = engine.run(make, jobs)
                found = {str(one.number): one.lost[0].why for one in answers if one.lost}
            if not found or len(found) == len(batch):
                examples = ", ".join(str(one + 1) for one in batch.index)
                raise ModelError(
                    f"No worker survives '{units[0]}' of {self.task.name} ({why}); one of the "
                    f"examples {examples} may be to blame: leave it out. The rest is safe."
                )
            self.ledger.note(_unit(number, _ASIDE), found)

    def _by_workers(
        self, engine: Engine, make: MakeWorker
    ) -> tuple[int, Sequence[str], str] | None:
        """The units that workers can do; else the batch and units that none survives, and why."""
        jobs: list[Piece] = []
        for number in self.examples.order:
            units = [_unit(number, WHOLE), *(unit for unit, _, _ in self._units(number))]
            left = [unit for unit in units if unit not in self.ledger]
            aside = self.ledger.noted(_unit(number, _ASIDE))
            for at in range(0, len(left), _TOGETHER):
                jobs.append(Piece(len(jobs), [(number, left[at : at + _TOGETHER], aside)]))
        with closing(engine.run(make, jobs)) as answers:  # type: ignore[type-var]
            for done, answer in enumerate(answers, start=1):
                if answer.lost:
                    number, units, _ = jobs[answer.number].parts[0]
                    return number, units, answer.lost[0].why
                number, counted, aside = answer.results[0][2]
                if aside:
                    self.ledger.note(_unit(number, _ASIDE), aside)
                for unit, counts in counted.items():
                    self.ledger.get(unit, partial(np.asarray, counts))
                if self._progress is not None:
                    self._progress(done, len(jobs))
        return None

    def work(
        self, parts: Sequence[tuple[int, Sequence[str], Mapping[str, str]]]
    ) -> tuple[int, dict[str, Floats], dict[str, str]]:
        """What a worker does: some units of a batch, without the rows that are known to kill.

        The batch, the counts of each unit, and the rows set aside.
        """
        ((number, units, aside),) = parts
        if aside:
            self.ledger.note(_unit(number, _ASIDE), aside)
        opened = _Open(self, number, self.examples.batches[number])
        runs = {name: partial(_without, mode=m, group=g) for name, m, g in self._units(number)}
        counts = {unit: self._sound(opened, number, runs.get(unit, _Open.whole)) for unit in units}
        return number, counts, self.ledger.noted(_unit(number, _ASIDE))

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


class _Open:
    """A batch that is being worked on: what stands in for heads, and whose whole run is kept."""

    def __init__(self, job: SweepJob, number: int, batch: Batch) -> None:
        self._job = job
        self.number = number
        self._batch = batch
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
            self._instead[mode] = self._job.instead[mode](self.number, self._batch)
        return self._instead[mode]


def _without(opened: _Open, mode: Mode, group: Group) -> Floats:
    return opened.without(mode, group)


def _unit(number: int, what: str) -> str:
    return f"batch {number} {what}"


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
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


# --- What a sweep measures: the task's loss, or the task's own metric ---------------------------

#: "loss" is teacher-forced; "task" is the metric that the task has.
Measured = Literal["loss", "task"]

_OF_TOKENS = (tasks.Translation, tasks.LanguageModelling, tasks.MaskedLanguageModelling)


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
    return replace(task, metric=tasks.LOSS if isinstance(task, _OF_TOKENS) else tasks.MEAN_LOSS)


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
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
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
    breaks on is set aside and named in the notes. `announce` is told how long it will take, where
    everything must be run.
    """
    task = sweep_task(task, metric)
    check_interventions(interventions, subject.heads)
    where = engine_of(engine)
    how: dict[str, Any] = {"batch_size": batch_size, "reference": reference}
    how |= {"seed": seed, "fast": fast}
    model = carried(subject, where)  # before anything hangs on it
    with _job(subject, task, interventions, **how) as job:
        way = job.way.name
        job.ledger = JournaledCounts(journal, name)
        if journal is not None:
            settings = {"batch_size": batch_size, "seed": seed, "way": way}
            about = fingerprint(subject, task, interventions, job.examples.batches, reference)
            job.ledger.begin(settings | about)
        if not where.remote:
            return job.run(progress, announce)
        make = partial(_worker, model, task, interventions, way, **how)
        return job.run(progress, announce, where, make)


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
    lengths = [
        max((tensor.shape[-1] for tensor in batch.inputs.values()), default=0)
        for batch in examples.batches
    ]
    shortest = lengths.index(min(lengths))
    trial = picked(examples.batches[shortest], range(min(2, len(examples.batches[shortest]))))
    with enough_memory(subject), eval_mode(subject.model), torch.no_grad():
        instead = {
            mode: prepared(mode, subject, task, examples.batches, reference, seed)
            for mode in dict.fromkeys(one.mode for one in interventions)
        }
        stand_in = next(iter(instead.values()))(shortest, trial)
        way, why = choose_way(subject, task, trial, stand_in, rows=batch_size, fast=fast)
        ledger = JournaledCounts(None, "")
        job = SweepJob(subject, task, interventions, examples, way, ledger, instead, why)
        with way.opened():
            yield job


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
