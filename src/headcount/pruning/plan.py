"""The plan of a pruning: heads scored and ordered, the curve measured, the heads chosen.

Orders follow Michel et al., NeurIPS 2019, section 4. How far an order can go within a loss that is
allowed is a fixed-sequence test (Maurer, Hothorn & Lehmacher 1995) on held-out examples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headcount import plugins
from headcount.errors import InputError, UsageError
from headcount.importance import (
    Sweep,
    check_score_names,
    check_task,
    read_names,
    score,
)
from headcount.models import Subject, bare_table, check_subject, fingerprint_of
from headcount.pruning.curve import (
    Order,
    Unit,
    candidates,
    check_stacks,
    even_units,
    loss_bounds,
    measure_curve,
    ordered,
    point_name,
    random_scores,
    spared,
)
from headcount.pruning.goal import JOURNAL, Goal, RankingOptions, read_goal, removed_counts
from headcount.pruning.remove import prune
from headcount.pruning.tolerance import (
    examples_needed,
    last_within,
    point_of,
    points_in_words,
    share_bound,
    unit_of,
)
from headcount.records import (
    Brief,
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    Journal,
    Run,
    announce,
    as_value,
    old_keywords,
    writable_run,
)
from headcount.stats import DRAWS, Floats
from headcount.tasks import Task

if TYPE_CHECKING:
    import pandas as pd


# --- Orders of heads from scores ----------------------------------------------------------------

RANDOM, REFIT = "random", "refit"


@dataclass
class Orders:
    """Where orders come from: a model, a task to score its heads on, and what is known already."""

    subject: Subject
    task: Task
    how: RankingOptions
    table: HeadTable | None = None
    run: Run | None = None
    journal: Journal | None = None
    engine: Engine | EngineOptions | str | None = None

    @cached_property
    def fitted(self) -> Any:
        """What output projections become without heads, measured on the task (`hc.Refit`)."""
        make = plugins.get("names", "Refit")
        return make(self.subject, self.task, batch_size=self.how.examples)

    def of(self, names: Sequence[str], goal: Goal) -> list[Order]:
        """An order for every score, and by stack for the first with `by_stack`."""
        anatomy = self.subject.anatomy
        units = candidates(anatomy, self.how.stacks)
        if not self._counts(units, goal):
            total = sum(map(len, units))
            raise UsageError(
                f"A step of {self.how.step:g}% of {total} heads is more than may go; take smaller "
                "steps (--ranking step=)."
            )
        made = [order for name in names for order in self._of(name, units, goal, "all")]
        there = check_stacks(self.how.stacks, anatomy.stacks)
        if self.how.by_stack and len(there) > 1:
            for stack in there:
                made += self._of(names[0], candidates(anatomy, [stack]), Goal(), stack)[:1]
        return made

    def _of(self, name: str, units: list[Unit], goal: Goal, scope: str) -> list[Order]:
        how = self.how
        counts = self._counts(units, goal, random=name == RANDOM)
        make = partial(ordered, units, counts=counts, at_least=how.at_least, scope=scope)
        if name == RANDOM:
            first = how.seed or 0
            seeds = range(first, first + max(1, how.randoms))
            drawn = {seed: random_scores(self.subject.heads, seed) for seed in seeds}
            made = [make(scores, name=f"{name} {seed}") for seed, scores in drawn.items()]
        elif how.even:
            units = even_units(units, self._scores(name, scope))
            # Rounds go one after another: the worth of each is its place.
            rounds = {head: float(place) for place, unit in enumerate(units) for head in unit}
            make = partial(ordered, units, counts=counts, at_least=how.at_least, scope=scope)
            made = [make(rounds, name=f"{name} even")]
        elif how.exact:
            made = [make(partial(self._scores, name, scope), name=f"{name} exact")]
        else:
            made = [make(self._scores(name, scope), name=name)]
        last_step(made[0], goal, units, how.at_least)
        return made

    def _counts(self, units: list[Unit], goal: Goal, *, random: bool = False) -> list[int]:
        total, how = sum(map(len, units)), self.how
        coarse = random and how.random_step is not None
        return removed_counts(
            total,
            how.random_step if random and how.random_step is not None else how.step,
            fine=how.fine and not coarse,
            convention=how.convention,
            encoder_decoder=self.subject.kind == "enc-dec",
            spared=spared(units, how.at_least, convention=how.convention),
            also=goal.removed(total),
        )

    def _scores(self, name: str, scope: str, gone: tuple[Head, ...] = ()) -> dict[Head, float]:
        """A score of the heads that are left, turned round where lower is more important.

        It is estimated on the model without the heads that are gone, or read from the journal.
        That of the whole model goes into the run's table too.
        """
        unit = f"scores {name} {scope} {len(gone)}" if gone else f"scores {name}"
        if self.journal is not None and unit in self.journal.done:
            return {Head(*row[:3]): row[3] for row in self.journal.done[unit]}
        if name == REFIT:
            return dict(self.fitted.worth(candidates(self.subject.anatomy)))
        table = score(
            prune(self.subject, gone) if gone else self.subject,
            self.task,
            by=name,
            table=None if gone else self.table,
            run=None if gone else self.run,
            normalize=self.how.normalize if name == "gradient" else None,
            convention=self.how.convention,
            batch_size=self.how.examples,
            seed=self.how.seed or 0,
            engine=self.engine,
        )
        sign = -1.0 if table.column(name).direction == "lower" else 1.0
        scores = dict(zip(table.heads, (sign * table.numbers(name)).tolist(), strict=True))
        if self.journal is not None:
            self.journal.append(unit, [[*head, worth] for head, worth in scores.items()])
        return scores

    def curve(
        self, task: Task, orders: Sequence[Order], part: str
    ) -> tuple[Sweep, pd.DataFrame, tuple[str, ...]]:
        """The curve on a task, put into the run with a table of names where no score left one."""
        sweep, frame, notes = measure_curve(
            self.subject,
            task,
            orders,
            part=part,
            seed=self.how.seed or 0,
            batch_size=self.how.examples,
            journal=self.journal,
            engine=self.engine,
            refit=self.fitted if self.how.refit else None,
        )
        if self.run is not None:
            if not self.run.has_table:
                about = {"model": self.subject.name, "weights": self.subject.weights_hash}
                self.run.write_table(HeadTable.of(self.subject.heads, {}, provenance=about))
            self.run.write_frame("curve", frame)
        return sweep, frame, tuple(notes)


def last_step(order: Order, goal: Goal, units: Sequence[Unit], at_least: int) -> int:
    """The last step of an order that takes no more heads than the goal asks for.

    Raises where the order ends before the goal, because layers must keep heads.
    """
    wanted = goal.removed(sum(map(len, units))) or 0
    steps = range(1, len(order) + 1)
    reached = max((step for step in steps if len(order.gone(step)) <= wanted), default=0)
    gone = len(order.gone(reached))
    if wanted and not gone and wanted < min(map(len, units)):
        raise UsageError(
            f"{wanted} heads are to be pruned, and {min(map(len, units))} is the fewest at "
            "once; remove more, or leave out even (--ranking even)."
        )
    if wanted - gone >= max(map(len, units)):
        raise UsageError(
            f"{wanted} heads are to be pruned, but at most {gone} can while every layer keeps at "
            f"least {at_least}; remove fewer, or lower at_least (--ranking at-least=)."
        )
    return reached


# --- How far an order can go within a loss ------------------------------------------------------


class SearchResult(NamedTuple):
    """How far a search came."""

    #: The last step that passed; 0 where even the first lost too much.
    step: int
    #: The upper bound of the loss at each step, in the metric's own unit; higher is worse.
    bounds: Floats
    #: What was allowed, in the metric's own unit.
    limit: float


def search(
    found: Sweep, order: Order, max_loss: float, *, draws: int = DRAWS, seed: int = 0
) -> SearchResult:
    """The last step of an order, tried in turn, whose loss is within `max_loss` points (95% bound).

    A step passes when the upper 95% confidence bound of its loss is within the limit, and the first
    that fails ends the search. So each test may use the whole level, and the chance that the step
    taken loses more than the limit is at most 5%, however many steps there are. The order must
    have been chosen on other examples than those of `found`.
    """
    limit = max_loss * point_of(found.baseline.name)
    if not order.steps:  # steps so large that no head may go
        return SearchResult(0, np.empty(0), limit)
    names = [one.name for one in found.interventions]
    steps = [names.index(point_name(order, step)) for step in range(1, len(order) + 1)]
    bounds = loss_bounds(found.some(steps), draws=draws, seed=seed)
    return SearchResult(last_within(bounds, limit), bounds, limit)


# --- The plan of a pruning ----------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Plan(Brief):
    """What would go, and what is known of it."""

    #: The heads to remove, in the order in which they go.
    going: tuple[Head, ...]
    goal: Goal
    #: The first order decides; the others are measured for comparison.
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
    #: With what the models of the curve were refitted (`hc.Refit`); None where they were only cut.
    refit: Any = None

    @property
    def chosen(self) -> pd.DataFrame:
        """The point of the curve that was chosen; after it the same point healed, where it was."""
        curve, first = self.curve, self.orders[0]
        mine = (curve["order"] == first.name) & (curve["scope"] == first.scope)
        return curve[mine & (curve["step"] == self.step)]

    @property
    def aim(self) -> str:
        """The goal in the unit of the metric: points, nats, BLEU."""
        return str(self.goal).replace("points", unit_of(self.sweep.baseline.name))

    def prune(self, subject: Subject) -> Subject:
        """The pruned model, refitted if the curve was measured so."""
        small: Subject = (self.refit.prune if self.refit else partial(prune, subject))(self.going)
        return small

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """What would go, and the curve."""
        return f"Plan({len(self.going)} heads to prune: {self.aim})", self.curve.set_index("step")


@old_keywords(ranking=RankingOptions)
def prune_plan(
    subject: Subject,
    task: Task,
    by: str | Sequence[str] = "gradient",
    *,
    max_loss: float | None = None,
    keep: int | None = None,
    drop_share: float | None = None,
    limit: int | None = None,
    judge: Task | None = None,
    table: HeadTable | None = None,
    ranking: RankingOptions = RankingOptions(),  # noqa: B008 - a frozen value
    run: Run | str | Path | None = None,
    engine: Engine | EngineOptions | str | None = None,
) -> Plan:
    """Order heads by a score on one half of the examples, and measure the curve on the other.

    `by` is any score of `hc.score`, or "random"; of several the first decides, and the others
    are measured for comparison. `max_loss` (in points, see `point_of`), `keep` or `drop_share` says
    how far to go; `drop_share=0` asks for the curve alone. `limit` takes the first examples, or
    with a seed a random sample. `judge` is a task to judge by, in place of the second half.

    `ranking`, a `RankingOptions`, says how heads are ordered: in a `step` of so many percent of the
    heads of `stacks` (with `max_loss` the first step is a single head); `exact` estimates scores
    again before every step; `even` takes as many from every layer, which more configs can say;
    `by_stack` adds curves that take from one stack only; `normalize` ("layer" or "none") is of the
    gradient score, as `--normalize_pruning_by_layer` of the authors' program.

    With a `run` directory every finished unit is on the disk at once, and the same call goes on
    after a kill.
    Scores and the curve are measured in this process, or by the workers of an `engine`.

    With `RankingOptions(refit=True)` what is left makes up for the heads that go, solved for on the
    half that chooses (`hc.Refit`), and every point of the curve is of a refitted model; then
    `by="refit"`, the order of cost after that, is the default.

    `plan.prune(subject)` then removes the heads.

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> task = hc.tasks.translation(sample.pairs()[:24], metric="loss")
    >>> how = hc.RankingOptions(step=25)
    >>> plan = hc.prune_plan(hc.load("translator"), task, drop_share=0.25, ranking=how)
    >>> plan, plan.curve["heads_left"].tolist()
    (Plan(36 heads to prune: 0.25 of all gone), [144, 108, 72, 36])
    """
    check_subject(subject, "prune_plan(subject, task, max_loss=0.5)")
    check_task(task, "prune_plan")
    goal = read_goal(max_loss, keep, drop_share)
    if goal.is_open:
        raise UsageError(
            "No goal was given; say how many heads to prune, with one of max_loss=0.5 (points), "
            "keep=36 (heads) and drop_share=0.5, or drop_share=0 for the curve alone."
        )
    how = as_value(RankingOptions, ranking, "ranking").limited(limit)
    if how.even and how.exact:
        raise UsageError("even takes as many heads from every layer by one score; leave out exact.")
    how = replace(how, fine=how.fine or (max_loss is not None and how.convention == "headcount"))
    task, seed = task if how.limit is None else task.limit(how.limit, how.seed), how.seed or 0
    names = read_names(REFIT if how.refit and by == "gradient" else by)
    if REFIT in names and (how.exact or not how.refit):
        raise UsageError(
            "The order 'refit' is of what heads cost after a refit; add refit=True (--refit), and "
            "leave out exact (--ranking exact)."
        )
    check_score_names([name for name in names if name not in (RANDOM, REFIT)], table)
    if len(task) < 2:
        raise InputError(
            f"{task.name} has {len(task)} example; heads are chosen on one half of a task and "
            "judged on the other, so it takes two or more."
        )
    task.check(subject)
    units = candidates(subject.anatomy, how.stacks)
    if len(units) > 1:
        prune(subject, units[0])  # a model that cannot be cut at all is refused before the work
    if how.even:
        units = even_units(units, dict.fromkeys(subject.heads, 0.0))
    choose, held_out = task.split(0.5, seed) if judge is None else (task, judge)
    _check_provable(held_out, max_loss, halved=judge is None)
    with (
        writable_run(run) as kept,
        _journal(subject, [choose, held_out], how, names, goal, kept) as log,
    ):
        maker = Orders(subject, choose, how, table, kept, log, engine)
        orders = maker.of(names, goal)
        sweep, frame, notes = maker.curve(held_out, orders, "held-out")
        fitted = maker.fitted if how.refit else None
    found = None if max_loss is None else search(sweep, orders[0], max_loss, seed=seed)
    reached = found.step if found else last_step(orders[0], goal, units, how.at_least)
    going = orders[0].gone(reached)
    return Plan(going, goal, tuple(orders), reached, frame, sweep, found, notes, choose, fitted)


def _check_provable(held_out: Task, max_loss: float | None, *, halved: bool) -> None:
    """Refuse a promise that these examples could not keep even if no answer changed."""
    name, count = held_out.metric.name, len(held_out)
    if max_loss is None or held_out.metric.test != "mcnemar":
        return
    if share_bound(count) <= max_loss * point_of(name):
        return
    least = math.ceil(share_bound(count) / point_of(name) * 100) / 100
    half = f"half of the {2 * count:,} examples is {count:,}" if halved else f"there are {count:,}"
    needed = examples_needed(max_loss * point_of(name))
    if max_loss == 0:
        takes = "No number of examples can show that nothing at all is lost"
    else:
        takes = f"It takes {needed:,} examples to show that {points_in_words(max_loss, name)} or "
        takes += "less is lost, even if no answer changes"
    raise UsageError(
        f"{takes}, and {half}. Give more, other examples to judge by (judge=, --judge FILE), or "
        f"allow {least:g} or more (max_loss=, --max-loss)."
    )


def plan_of_heads(
    subject: Subject,
    task: Task,
    heads: Sequence[Head],
    *,
    halve: bool = False,
    run: Run | None = None,
    batch_size: int = 16,
    seed: int = 0,
    engine: Engine | EngineOptions | str | None = None,
) -> Plan:
    """What heads that were chosen already cost together, on all examples of a task.

    With `halve` they are judged on one half, and the other is left to learn from.
    """
    choose, judged = task.split(0.5, seed) if halve else (None, task)
    order = Order("heads", "all", (tuple(heads),))
    how, names = RankingOptions(batch_size=batch_size, seed=seed), [",".join(map(str, heads))]
    part = "held-out" if halve else "all"
    with _journal(subject, [judged], how, names, Goal(), run) as log:
        maker = Orders(subject, judged, how, None, run, log, engine)
        sweep, frame, notes = maker.curve(judged, [order], part)
    return Plan(order.gone(1), Goal(), (order,), 1, frame, sweep, notes=notes, choose=choose)


def _journal(
    subject: Subject,
    tasks: Sequence[Task],
    how: RankingOptions,
    names: Sequence[str],
    goal: Goal,
    run: Run | None,
) -> AbstractContextManager[Journal | None]:
    """The run's journal of a pruning: for the same model, examples and settings only."""
    if run is None:
        return nullcontext()
    run.check_subject(bare_table(subject))
    about: dict[str, Any] = tasks[-1].describe()
    fingerprint = {
        "what": "headcount prune",
        **fingerprint_of(subject),
        "data": [task.hash for task in tasks],
        "task": {key: value for key, value in about.items() if key not in ("data", "hash")},
        "by": list(names),
        "goal": "a loss" if goal.max_loss is not None else str(goal),  # any has the same curve
        **{name: value for name, value in asdict(how).items() if name != "limit"},
        "batch_size": how.examples,
        "seed": how.seed or 0,
    }
    interrupted = (run.path / f"{JOURNAL}.jsonl").exists()
    log = run.journal(fingerprint, JOURNAL)
    if log.done:
        what = f"{len(log.done):,} measurements of a pruning that was interrupted are"
        if not interrupted:
            what = "the scores and the curve of the same model, examples, order and steps are"
        announce(f"Resumed from {run.path}/: {what} used again.")
    return log
