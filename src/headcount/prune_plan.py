"""The plan of a pruning: heads scored and ordered, the curve measured, the heads to go chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.errors import InputError
from headcount.heads import Head
from headcount.importance.options import read_names
from headcount.journal import Journal
from headcount.prune_orders import RANDOM, How, Orders
from headcount.pruning.candidates import candidates
from headcount.pruning.curve import curve_frame, curve_sweep
from headcount.pruning.goal import Goal, read_goal, step_of
from headcount.pruning.order import Order
from headcount.pruning.remove import prune
from headcount.pruning.search import Found, search
from headcount.run import Run
from headcount.score import Progress, check_names, vocabulary_hash
from headcount.subject import Subject
from headcount.sweeps import Sweep
from headcount.table import HeadTable
from headcount.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JOURNAL", "Plan", "plan_of_heads", "prune_plan"]

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
    found: Found | None = None
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
    how = How(
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
    how, names = How(batch_size=batch_size, seed=seed), [",".join(map(str, heads))]
    with _opened(run) as kept, _journal(subject, [judged], how, names, Goal(), kept) as log:
        curve = _Curve(subject, judged, how, kept, log, progress, announce)
        sweep, frame, notes = curve.measure([order], "held-out" if halve else "all")
    return Plan(order.gone(1), Goal(), (order,), 1, frame, sweep, notes=notes, choose=choose)


@dataclass(frozen=True)
class _Curve:
    """Where the curve is measured, and where it is kept."""

    subject: Subject
    task: Task
    how: How
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
            progress=None if self.progress is None else partial(self.progress, "curve"),
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
    check_names([name for name in names if name != RANDOM], table)
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
    how: How,
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
