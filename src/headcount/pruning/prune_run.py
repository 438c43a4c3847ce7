"""A whole pruning into a folder: planned, cut, saved, proved to load, and kept with its curve."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.errors import RunError
from headcount.importance import Intervention, Sweep
from headcount.models import Saved, Subject, core_of
from headcount.pruning.costs import ModelCosts, model_costs
from headcount.pruning.curve import curve_frame, point_name
from headcount.pruning.cut import keeps
from headcount.pruning.goal import Goal, OutputFolder
from headcount.pruning.learn import heal, learn_gates
from headcount.pruning.order import Order
from headcount.pruning.plan import JOURNAL, Plan, plan_of_heads, prune_plan
from headcount.pruning.remove import prune, read_heads
from headcount.records import Head, HeadTable, Progress, Run, provenance
from headcount.tasks import Outcome, Task

# --- Prunings in which weights learn ------------------------------------------------------------


@dataclass(frozen=True)
class TrainingOptions:
    """How a model learns: so many steps at a rate, on these examples."""

    steps: int
    lr: float = 5e-5
    #: The examples to learn from; None for those that heads are chosen on.
    task: Task | None = None
    #: Where a training that was killed goes on.
    checkpoint: Path | None = None
    batch_size: int = 16
    seed: int = 0
    progress: Progress | None = None

    def options(self) -> dict[str, Any]:
        """What `heal` and `learn_gates` take by name."""
        shared = ("steps", "lr", "checkpoint", "batch_size", "seed", "progress")
        return {name: getattr(self, name) for name in shared}


def gates_plan(
    subject: Subject,
    task: Task,
    training: TrainingOptions,
    *,
    price: float | None = None,
    keep: int | None = None,
    stacks: Sequence[str] | None = None,
    train: str = "all",
    convention: str = "headcount",
) -> tuple[Plan, Subject]:
    """Learn gates on one half of a task, and judge the model without the closed heads on the other.

    `price` is the paper's lambda; `keep` instead drives it to so many heads. Gives the plan, whose
    curve has the whole model and the trained one, and the model that is left.
    """
    choose, held_out = task.split(0.5, training.seed)
    learned = learn_gates(
        subject,
        training.task or choose,
        stacks=stacks,
        keep=keep,
        penalty=price,
        train=train,
        convention=convention,
        **training.options(),
    )
    going, small = tuple(learned.removed), learned.prune()
    order = Order("gates", "all", (going,) if going else ())
    sweep = _judged(subject, small, held_out, order, training.batch_size)
    frame, notes = curve_frame(
        sweep, [order], heads=len(subject.heads), part="held-out", seed=training.seed
    )
    frame["healed"] = frame["step"] > 0  # its weights have learned
    told = (*learned.notes, *notes)
    goal = Goal(keep=keep)
    return Plan(going, goal, (order,), len(order), frame, sweep, notes=told, choose=choose), small


def healed_plan(
    plan: Plan, subject: Subject, small: Subject, training: TrainingOptions
) -> tuple[Plan, Subject]:
    """Train what is left, taught by the whole model, and add what it then scores to the curve."""
    learn_from = training.task or plan.choose
    assert learn_from is not None  # or it would learn from what it is judged on
    healed = heal(small, learn_from, teacher=subject, **training.options()).subject
    first = plan.orders[0]
    order = Order(first.name, first.scope, (plan.going,))
    sweep = _judged(subject, healed, plan.sweep.task, order, training.batch_size)
    frame, notes = curve_frame(
        sweep, [order], heads=len(subject.heads), part="held-out", seed=training.seed
    )
    point = frame[frame["step"] == 1].assign(step=plan.step, removed="", healed=True)
    curve = pd.concat([plan.curve, point], ignore_index=True)
    return replace(plan, curve=curve, notes=(*plan.notes, *notes)), healed


def _judged(subject: Subject, small: Subject, task: Task, order: Order, batch_size: int) -> Sweep:
    """The whole model and the trained one on the same examples, as a sweep of one point."""
    whole = task.evaluate(subject, batch_size=batch_size)
    points: list[tuple[Head, ...]] = [order.gone(1)] if order.steps else []
    outcomes: list[Outcome] = [task.evaluate(small, batch_size=batch_size) for _ in points]
    asked = [Intervention(heads, name=point_name(order, 1)) for heads in points]
    return Sweep(task, tuple(asked), whole, tuple(outcomes), len(task), fast=False)


# --- A whole pruning into a folder --------------------------------------------------------------


@dataclass(frozen=True)
class Pruned:
    """What came of a pruning."""

    going: tuple[Head, ...]
    #: None where heads were named and no task was given.
    plan: Plan | None
    #: The model that is left; None where nothing could go.
    small: Subject | None
    #: By what was saved: "model", "onnx", "zeros"; empty for a dry run.
    saved: dict[str, Saved]
    #: Before and after: parameters, operations of a forward, bytes of the cache a token.
    costs: tuple[ModelCosts, ModelCosts]
    notes: tuple[str, ...]


def prune_run(
    subject: Subject,
    task: Task | None,
    *,
    heads: str | Sequence[str | Head] | None = None,
    gates: TrainingOptions | None = None,
    heal: TrainingOptions | None = None,
    place: OutputFolder | None = None,
    export: str | None = None,
    force: bool = False,
    batch_size: int = 16,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    draw: Callable[[Plan, Path], list[str]] | None = None,
    **how: Any,
) -> Pruned:
    """Plan a pruning, cut the heads out, and save the model that is left in `place`.

    `heads` are removed as they are named; with `gates` a training closes them, and `how` are the
    options of `gates_plan`; else those of `prune_plan`. With `heal` the model that is left is
    trained too. Without a `place` nothing is written; `draw` makes a picture of the curve there and
    gives notes. What was measured is kept until the model
    is saved: the same call goes on after a kill.
    """
    common: dict[str, Any] = {"batch_size": batch_size, "seed": seed}
    common |= {"progress": progress, "announce": announce}
    told: list[str] = []
    with _noting(told), _run_at(place, task, subject, force) as run:
        plan: Plan | None
        if gates is not None:
            assert task is not None  # nothing can be learned without one
            plan, small = _gated(subject, task, _with_desk(gates, place, "gates", progress), how)
        else:
            plan, small = _cut(subject, task, heads, how, heal is not None, run, common)
        if heal is not None and plan is not None and small is not None:
            training = _with_desk(heal, place, "heal", progress)
            plan, small = healed_plan(plan, subject, small, training)
        left = set(subject.heads if small is None else small.heads)
        going = tuple(head for head in subject.heads if head not in left)
        told += [] if plan is None else plan.notes
        saved = _saved(small, place, export, force)
        if run is not None and plan is not None and place is not None:
            told += [] if draw is None else draw(plan, place.picture)
            _mark_done(run, place, subject, plan, saved, how)
    tokens = _usual_length(subject)
    costs = model_costs(subject, tokens), model_costs(small or subject, tokens)
    return Pruned(going, plan, small, saved, costs, tuple(dict.fromkeys(told)))


def _cut(
    subject: Subject,
    task: Task | None,
    heads: str | Sequence[str | Head] | None,
    how: dict[str, Any],
    halve: bool,
    run: Run | None,
    common: dict[str, Any],
) -> tuple[Plan | None, Subject | None]:
    """Heads that were named, or that a score puts first, cut out; the plan where there is one."""
    if heads is None:
        assert task is not None  # a score needs one
        plan = prune_plan(subject, task, run=run, **how, **common)
        return plan, prune(subject, plan.going) if plan.going else None
    going = tuple(read_heads(heads, subject.heads))
    keeps(subject.anatomy, going)  # what cannot go alone is told before the long work
    if task is None:
        return None, prune(subject, going)
    named = plan_of_heads(subject, task, going, halve=halve, run=run, **common)
    return named, prune(subject, going)


def _gated(
    subject: Subject, task: Task, training: TrainingOptions, how: dict[str, Any]
) -> tuple[Plan, Subject | None]:
    """What gates closed; no smaller model where none did."""
    plan, small = gates_plan(subject, task, training, **how)
    return plan, small if plan.going else None


def _with_desk(
    training: TrainingOptions, place: OutputFolder | None, kind: str, progress: Progress | None
) -> TrainingOptions:
    """A training with a place for its checkpoints, and somebody who watches."""
    watched = None if progress is None else partial(progress, what=kind)
    desk = None if place is None else place.training / kind
    return replace(training, checkpoint=desk, progress=watched)


def _saved(
    small: Subject | None, place: OutputFolder | None, export: str | None, force: bool
) -> dict[str, Saved]:
    """The model in its folder, and in another format where that was asked."""
    if small is None or place is None:
        return {}
    saved = {"model": small.save(place.model, force=force)}
    if export is not None:
        saved[export] = small.save(place.export(export), force=force, export=export)
    return saved


def _mark_done(
    run: Run,
    place: OutputFolder,
    subject: Subject,
    plan: Plan,
    saved: dict[str, Saved],
    how: dict[str, Any],
) -> None:
    """Write down what was done; only then is the journal no longer needed."""
    about = provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=subject.weights_hash,
        subject=subject.describe(),
        task=plan.sweep.task.describe(),
    )
    settings = {
        **{key: value for key, value in how.items() if key != "table"},
        "goal": str(plan.goal),
        "going": [str(head) for head in plan.going],
        "routes": {what: one.route for what, one in saved.items()},
    }
    run.write_frame("curve", plan.curve)
    if not run.has_table:
        run.write_table(HeadTable.of(subject.heads, {}, provenance=about))
    run.stage("prune").finish(settings, about, plan.notes)
    run.drop_journal(JOURNAL)
    shutil.rmtree(place.training, ignore_errors=True)


def _usual_length(subject: Subject) -> int:
    """The length at which costs are counted: 128 tokens, or what the model takes."""
    config = core_of(subject.model).config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    return min([128, *(most for most in limits if isinstance(most, int))])


@contextmanager
def _run_at(
    place: OutputFolder | None, task: Task | None, subject: Subject, force: bool
) -> Iterator[Run | None]:
    """The run inside the output folder; none for a dry run, or without a task."""
    if place is None or task is None:
        yield None
        return
    with Run.open(place.run) as run:
        if force:
            _make_room(run, subject)
        yield run


def _make_room(run: Run, subject: Subject) -> None:
    """Clear what a run knows of another model; what it knows of this one is measured anew."""
    bare = HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash})
    try:
        run.check_subject(bare)
    except RunError:
        run.write_table(bare, replace=True)
        run.drop_journal(JOURNAL)


@contextmanager
def _noting(told: list[str]) -> Iterator[None]:
    """What the surgery warns of becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    told += [str(one.message) for one in caught if one.category is UserWarning]
