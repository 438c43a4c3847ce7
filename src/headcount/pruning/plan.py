"""The plan of a pruning: heads scored and ordered, the curve measured, the heads to go chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headcount.errors import InputError, UsageError
from headcount.importance import (
    Sweep,
    check_score_names,
    name_first,
    read_names,
    score,
    vocabulary_hash,
)
from headcount.models import Subject
from headcount.pruning.curve import curve_frame, curve_sweep, point_name
from headcount.pruning.goal import Goal, read_goal, removed_counts
from headcount.pruning.order import (
    Order,
    Rank,
    Unit,
    candidates,
    check_stacks,
    ordered,
    random_scores,
    spared,
)
from headcount.pruning.remove import prune
from headcount.records import Head, HeadTable, Journal, Progress, Run
from headcount.stats import DRAWS, Floats, paired_share_interval
from headcount.tasks import Task

if TYPE_CHECKING:
    import pandas as pd


def step_of(goal: Goal, units: Sequence[Unit], order: Order) -> int:
    """The last step of an order that takes no more heads than the goal asks for."""
    wanted = goal.removed(sum(map(len, units))) or 0
    steps = range(1, len(order) + 1)
    return max((step for step in steps if len(order.gone(step)) <= wanted), default=0)


def check_reached(goal: Goal, units: Sequence[Unit], order: Order, at_least: int) -> None:
    """Raise where an order ends before the goal, because layers must keep heads."""
    wanted = goal.removed(sum(map(len, units))) or 0
    gone = len(order.gone(step_of(goal, units, order)))
    if wanted - gone >= max(map(len, units)):
        raise UsageError(
            f"{wanted} heads are to go, but no more than {gone} can while every layer keeps at "
            f"least {at_least}; remove fewer, or lower at_least (--at-least)."
        )


# --- Orders of heads from scores ----------------------------------------------------------------

RANDOM = "random"


@dataclass(frozen=True)
class OrderOptions:
    """How heads are ordered; `prune_plan` says what each means."""

    step: float = 10.0
    exact: bool = False
    at_least: int = 0
    stacks: tuple[str, ...] | None = None
    by_stack: bool = False
    randoms: int = 3
    convention: str = "headcount"
    batch_size: int = 16
    seed: int = 0
    normalize: str | None = None


@dataclass
class Orders:
    """Where orders come from: a model, a task to score its heads on, and what is known already."""

    subject: Subject
    task: Task
    how: OrderOptions
    table: HeadTable | None = None
    run: Run | None = None
    journal: Journal | None = None
    progress: Progress | None = None
    announce: Callable[[str], None] | None = None

    def of(self, names: Sequence[str], goal: Goal) -> list[Order]:
        """An order for every score, and by stack for the first where that was asked."""
        anatomy = self.subject.anatomy
        units = candidates(anatomy, self.how.stacks)
        self._check_steps(units, goal)
        made = [order for name in names for order in self._of(name, units, goal, "all")]
        there = check_stacks(self.how.stacks, anatomy.stacks)
        if self.how.by_stack and len(there) > 1:
            for stack in there:
                made += self._of(names[0], candidates(anatomy, [stack]), Goal(), stack)[:1]
        return made

    def _of(self, name: str, units: list[Unit], goal: Goal, scope: str) -> list[Order]:
        counts = self._counts(units, goal)
        make = partial(ordered, units, counts=counts, at_least=self.how.at_least, scope=scope)
        if name == RANDOM:
            seeds = range(self.how.seed, self.how.seed + max(1, self.how.randoms))
            drawn = {seed: random_scores(self.subject.heads, seed) for seed in seeds}
            made = [make(scores, name=f"{name} {seed}") for seed, scores in drawn.items()]
        elif self.how.exact:
            made = [make(self._again(name, scope), name=f"{name} exact")]
        else:
            made = [make(self._scores(name), name=name)]
        check_reached(goal, units, made[0], self.how.at_least)
        return made

    def _check_steps(self, units: list[Unit], goal: Goal) -> None:
        """Refuse steps of which not even the first can be taken, before heads are scored."""
        if not self._counts(units, goal):
            total = sum(map(len, units))
            raise UsageError(
                f"A step of {self.how.step:g}% of {total} heads is more than may go; take smaller "
                "steps (--step)."
            )

    def _counts(self, units: list[Unit], goal: Goal) -> list[int]:
        total, how = sum(map(len, units)), self.how
        return removed_counts(
            total,
            how.step,
            convention=how.convention,
            encoder_decoder=self.subject.kind == "enc-dec",
            spared=spared(units, how.at_least, convention=how.convention),
            also=goal.removed(total),
        )

    def _again(self, name: str, scope: str) -> Rank:
        """A score that is estimated anew on the model without the heads that are gone."""

        def rank(gone: tuple[Head, ...]) -> Mapping[Head, float]:
            if not gone:
                return self._scores(name)
            unit = f"scores {name} {scope} {len(gone)}"
            return self._kept(unit, lambda: self._measured(prune(self.subject, gone), name))

        return rank

    def _scores(self, name: str) -> dict[Head, float]:
        """A score of the whole model, in the run's table where there is one."""
        return self._kept(f"scores {name}", lambda: self._measured(self.subject, name, self.run))

    def _kept(self, unit: str, measure: Callable[[], dict[Head, float]]) -> dict[Head, float]:
        """Scores from the journal, or measured and written there."""
        if self.journal is None:
            return measure()
        if unit not in self.journal.done:
            self.journal.append(unit, [[*head, worth] for head, worth in measure().items()])
        return {Head(*row[:3]): row[3] for row in self.journal.done[unit]}

    def _measured(self, subject: Subject, name: str, run: Run | None = None) -> dict[Head, float]:
        """A score by name; turned round where lower is more important."""
        table = score(
            subject,
            self.task,
            by=name,
            table=self.table if subject is self.subject else None,
            run=run,
            normalize=self.how.normalize if name == "gradient" else None,
            convention=self.how.convention,
            batch_size=self.how.batch_size,
            seed=self.how.seed,
            progress=name_first(self.progress),
            announce=self.announce,
        )
        sign = -1.0 if table.column(name).direction == "lower" else 1.0
        return dict(zip(table.heads, (sign * table.numbers(name)).tolist(), strict=True))


# --- What a point of a metric is ----------------------------------------------------------------

#: Metrics that are shares or correlations: a point is a hundredth.
_OF_ONE = ("accuracy", "f1", "matthews", "pearson", "spearman")
_UNITS = {"loss": "nats", "perplexity": "perplexity", "bleu": "BLEU", "chrf": "chrF"}


def point_of(metric: str) -> float:
    """One point of a metric, as the metric counts.

    A hundredth for accuracy, F1 and correlations; 1 of 100 for BLEU and chrF; a nat for losses.

    >>> point_of("accuracy"), point_of("bleu")
    (0.01, 1.0)
    """
    return 0.01 if metric in _OF_ONE else 1.0


def points_in_words(points: float, metric: str) -> str:
    """So many points, said so that nobody takes a share for a percentage.

    >>> points_in_words(0.5, "accuracy"), points_in_words(0.5, "bleu")
    ('0.5 points of accuracy (0.005)', '0.5 BLEU')
    """
    if metric in _OF_ONE:
        return f"{points:g} points of {metric} ({points / 100:g})"
    return f"{points:g} {_UNITS.get(metric, f'of {metric}')}"


# --- The engineer's question --------------------------------------------------------------------
# Steps of a nested order are tried one after the other on held-out examples. A step passes when
# the upper confidence bound of its loss is within the limit, and the first that fails ends the
# search: fixed-sequence testing (Maurer, Hothorn & Lehmacher 1995). So each test may use the whole
# level, and the chance that the step taken loses more than the limit is at most 1 - confidence,
# however many steps there are.

CONFIDENCE = 0.95


class SearchResult(NamedTuple):
    """How far a search came."""

    #: The last step that passed; 0 where even the first lost too much.
    step: int
    #: The upper bound of the loss at each step, in the metric's own unit; higher is worse.
    bounds: Floats
    #: What was allowed, in the metric's own unit.
    limit: float


def search(
    found: Sweep,
    order: Order,
    max_loss: float,
    *,
    confidence: float = CONFIDENCE,
    draws: int = DRAWS,
    seed: int = 0,
) -> SearchResult:
    """The last step of an order, tried in turn, whose loss is surely within `max_loss` points.

    The order must have been chosen on other examples than those of `found`.
    """
    if not max_loss >= 0:
        raise UsageError(f"The loss allowed is {max_loss:g} points; it must be 0 or more.")
    limit = max_loss * point_of(found.baseline.name)
    if not order.steps:  # steps so large that no head may go
        return SearchResult(0, np.empty(0), limit)
    bounds = loss_bounds(_along(found, order), confidence=confidence, draws=draws, seed=seed)
    passed = bounds <= limit
    step = len(passed) if passed.all() else int(np.argmin(passed))
    return SearchResult(step, bounds, limit)


def loss_bounds(
    found: Sweep, *, confidence: float = CONFIDENCE, draws: int = DRAWS, seed: int = 0
) -> Floats:
    """The one-sided upper confidence bound of what each intervention costs, uncorrected.

    From the paired bootstrap; for accuracy, where the bootstrap is too sure of few examples, from
    the adjusted Wald interval of Bonett & Price 2012.
    """
    both_sides = 2 * confidence - 1
    if found.baseline.metric.test == "mcnemar":
        right = np.stack([outcome.scores for outcome in found.outcomes], axis=1)
        interval = paired_share_interval(right, found.baseline.scores, confidence=both_sides)
        return -np.asarray(interval.low)
    compared = found.losses(confidence=both_sides, correction="none", draws=draws, seed=seed)
    # A metric that is undefined without these heads is as bad as it can be.
    return np.nan_to_num(np.asarray(compared.high), nan=np.inf)


def _along(found: Sweep, order: Order) -> Sweep:
    """The points of one order, in the order of its steps."""
    names = [one.name for one in found.interventions]
    return found.some([names.index(point_name(order, step)) for step in range(1, len(order) + 1)])


# --- The plan of a pruning ----------------------------------------------------------------------

#: What the journal of a pruning is called within its run.
JOURNAL = "prune"


@dataclass(frozen=True)
class Plan:
    """What would go, and what is known of it."""

    #: The heads to remove, in the order in which they go.
    going: tuple[Head, ...]
    goal: Goal
    #: The first order decides; the others stand beside it.
    orders: tuple[Order, ...]
    #: The step of the first order that was chosen; 0 where nothing goes.
    step: int
    #: As `curve.parquet` has it.
    curve: pd.DataFrame
    #: All points of the curve, example by example.
    sweep: Sweep
    #: How far a loss that was allowed let it go.
    found: SearchResult | None = None
    notes: tuple[str, ...] = ()
    #: The examples that heads were chosen on; None where they were named.
    choose: Task | None = None

    def __repr__(self) -> str:
        return f"Plan({len(self.going)} heads to go: {self.goal})"


def prune_plan(
    subject: Subject,
    task: Task,
    by: str | Sequence[str] = "gradient",
    *,
    max_loss: float | None = None,
    keep: int | None = None,
    drop_share: float | None = None,
    step: float = 10.0,
    exact: bool = False,
    at_least: int = 0,
    stacks: Sequence[str] | None = None,
    by_stack: bool = False,
    randoms: int = 3,
    judge: Task | None = None,
    table: HeadTable | None = None,
    run: Run | str | Path | None = None,
    normalize: str | None = None,
    convention: str = "headcount",
    batch_size: int = 16,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Plan:
    """Order heads by a score on one half of the examples, and measure the curve on the other.

    `by` is any score of `hc.score`, or "random"; of several the first decides, and the others
    stand beside it ("random" as often as `randoms` says). `max_loss` (in points, see
    `pruning.points`), `keep` or `drop_share` says how far to go; with none of them nothing goes.
    `step` is in percent of the heads of `stacks`. With `exact` scores are estimated again before
    every step, on the model without the heads that are gone. `by_stack` adds curves that take
    from one stack alone. `normalize` ("layer" or "none") is of the gradient score: over the norm
    of its layer, as `--normalize_pruning_by_layer` of the authors' program. `judge` is a task to
    judge by, in place of the second half. With a `run`
    every finished unit is on the disk at once, and the same call goes on after a kill.

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> task = hc.tasks.translation(sample.pairs()[:24], metric="loss")
    >>> plan = prune_plan(hc.load("translator", device="cpu"), task, drop_share=0.25, step=25)
    >>> plan, plan.curve["heads_left"].tolist()
    (Plan(36 heads to go: 0.25 of all gone), [144, 108, 72, 36])
    """
    goal = read_goal(max_loss, keep, drop_share)
    chosen = None if stacks is None else tuple(stacks)
    how = OrderOptions(
        *(step, exact, at_least, chosen, by_stack, randoms, convention, batch_size, seed),
        normalize=normalize,
    )
    names = _checked(subject, task, by, table, chosen)
    choose, held_out = task.split(0.5, seed) if judge is None else (task, judge)
    with _opened(run) as kept, _journal(subject, [choose, held_out], how, names, goal, kept) as log:
        maker = Orders(subject, choose, how, table, kept, log, progress, announce)
        orders = maker.of(names, goal)
        curve = _Curve(subject, held_out, how, kept, log, progress, announce)
        sweep, frame, notes = curve.measure(orders, "held-out")
    first, found = orders[0], None
    if max_loss is not None:
        found = search(sweep, first, max_loss, seed=seed)
        reached = found.step
    else:
        reached = step_of(goal, candidates(subject.anatomy, chosen), first)
    return Plan(
        first.gone(reached), goal, tuple(orders), reached, frame, sweep, found, notes, choose
    )


def plan_of_heads(
    subject: Subject,
    task: Task,
    heads: Sequence[Head],
    *,
    halve: bool = False,
    run: Run | str | Path | None = None,
    batch_size: int = 16,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Plan:
    """What heads that were chosen already cost together, on all examples of a task.

    With `halve` they are judged on one half, and the other is left to learn from.
    """
    choose, judged = task.split(0.5, seed) if halve else (None, task)
    order = Order("heads", "all", (tuple(heads),))
    how, names = OrderOptions(batch_size=batch_size, seed=seed), [",".join(map(str, heads))]
    with _opened(run) as kept, _journal(subject, [judged], how, names, Goal(), kept) as log:
        curve = _Curve(subject, judged, how, kept, log, progress, announce)
        sweep, frame, notes = curve.measure([order], "held-out" if halve else "all")
    return Plan(order.gone(1), Goal(), (order,), 1, frame, sweep, notes=notes, choose=choose)


@dataclass(frozen=True)
class _Curve:
    """Where the curve is measured, and where it is kept."""

    subject: Subject
    task: Task
    how: OrderOptions
    run: Run | None
    journal: Journal | None
    progress: Progress | None
    announce: Callable[[str], None] | None

    def measure(
        self, orders: Sequence[Order], part: str
    ) -> tuple[Sweep, pd.DataFrame, tuple[str, ...]]:
        """Every point of every order: as a sweep, as a frame, and what to note."""
        sweep = curve_sweep(
            self.subject,
            self.task,
            orders,
            batch_size=self.how.batch_size,
            seed=self.how.seed,
            journal=self.journal,
            progress=None if self.progress is None else partial(self.progress, what="curve"),
            announce=self.announce,
        )
        frame, notes = curve_frame(
            sweep, orders, heads=len(self.subject.heads), part=part, seed=self.how.seed
        )
        if self.run is not None:
            self._write(self.run, frame)
        return sweep, frame, (*sweep.notes, *notes)

    def _write(self, run: Run, frame: pd.DataFrame) -> None:
        """Put the curve into the run, and a table of names where no score left one."""
        if not run.has_table:
            about = {"model": self.subject.name, "weights": self.subject.weights_hash}
            run.write_table(HeadTable.of(self.subject.heads, {}, provenance=about))
        run.write_frame("curve", frame)


def _checked(
    subject: Subject,
    task: Task,
    by: str | Sequence[str],
    table: HeadTable | None,
    stacks: Sequence[str] | None,
) -> list[str]:
    """The scores to order by; what cannot work is told before the long work."""
    names = read_names(by)
    check_score_names([name for name in names if name != RANDOM], table)
    if len(task) < 2:
        raise InputError(
            f"{task.name} has {len(task)} example; heads are chosen on one half of a task and "
            "judged on the other, so it takes two or more."
        )
    task.check(subject)
    units = candidates(subject.anatomy, stacks)
    if len(units) > 1:
        prune(subject, units[0])  # a rehearsal, for a model that cannot be cut at all
    return names


def _journal(
    subject: Subject,
    tasks: Sequence[Task],
    how: OrderOptions,
    names: Sequence[str],
    goal: Goal,
    run: Run | None,
) -> AbstractContextManager[Journal | None]:
    """The run's journal of a pruning: for the same model, examples and settings only."""
    if run is None:
        return nullcontext()
    run.check_subject(HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash}))
    about: dict[str, Any] = tasks[-1].describe()
    fingerprint = {
        "what": "headcount prune",
        "weights": subject.weights_hash,
        "tokenizer": vocabulary_hash(subject),
        "dtype": str(subject.dtype).removeprefix("torch."),
        "device": subject.device.type,
        "data": [task.hash for task in tasks],
        "task": {key: value for key, value in about.items() if key not in ("data", "hash")},
        "by": list(names),
        "goal": str(goal),
        **asdict(how),
    }
    return run.journal(fingerprint, JOURNAL)


def _opened(run: Run | str | Path | None) -> AbstractContextManager[Run | None]:
    """The run, opened here where a path was given; somebody else's stays open."""
    return nullcontext(run) if run is None or isinstance(run, Run) else Run.open(run)
