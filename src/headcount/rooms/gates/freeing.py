"""What learned gates free and what healing gives back, at a few sizes of a model.

Gates are those of Voita et al. 2019, on weights that stay as they are, so that they only choose;
healing trains what is left with the whole model as the teacher. Both learn from examples that do
not judge. The frames look like a pruning curve, but the heads of one step need not be among those
of the next: `removed` names all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd

from headcount import plugins
from headcount.importance import Intervention, Sweep
from headcount.models import Subject
from headcount.pruning import (
    Goal,
    Order,
    Plan,
    TrainingOptions,
    curve_frame,
    held_out_curves,
    point_name,
    prune,
)
from headcount.records import Head, InnerPath, Journal, parse_heads
from headcount.reports import (
    StageMaker,
    StoryContext,
    StoryStage,
    evaluation_step,
    halves_of,
    too_few,
)
from headcount.rooms.gates.learning import heal, learn_gates
from headcount.rooms.gates.page import HeadSets, sets_of_frame
from headcount.tasks import Custom, Outcome, Task

# --- A few sizes of a model ---------------------------------------------------------------------

#: The shares of all heads that are left, the most first.
SHARES = (0.85, 0.7, 0.5, 0.3)


def sizes(heads: int) -> list[int]:
    """How many heads are left at each step.

    >>> sizes(144), sizes(2)
    ([122, 101, 72, 43], [1])
    """
    return [n for n in dict.fromkeys(round(heads * share) for share in SHARES) if 0 < n < heads]


@dataclass(frozen=True)
class SizeStudy:
    """A model at a few sizes: examples to learn from, others to judge by, and what is done."""

    subject: Subject
    choose: Task
    #: The same held-out examples by each metric.
    judges: Sequence[Task]
    training: TrainingOptions
    journal: Journal
    #: Where a training that was killed goes on.
    folder: InnerPath

    def gates(self) -> tuple[HeadSets, list[str]]:
        """The heads that frozen-weight gates close, learned anew for each size; what to note."""
        sets, notes = HeadSets(), list[str]()
        for keep in sizes(len(self.subject.heads)):
            if (unit := f"gates {keep}") not in self.journal.done:
                how = self._training(keep).options()
                learned = learn_gates(self.subject, self.choose, keep=keep, train="gates", **how)
                self._done(
                    unit, [[str(head) for head in learned.gates.closed(keep)], learned.notes]
                )
            going, said = self.journal.done[unit]
            sets[keep] = tuple(parse_heads(going))
            notes += said
        return sets, notes

    def judged(
        self, sets: Mapping[int, Sequence[Head]], name: str, *, refit: bool = False
    ) -> tuple[pd.DataFrame, list[str]]:
        """The model without each set, unchanged or refitted, as a curve called `name`."""
        judged = [(judge, _orders(sets, name)) for judge in self.judges]
        how: dict[str, Any] = {"batch_size": self.training.batch_size, "journal": self.journal}
        if refit:
            make = plugins.get("names", "Refit")
            how["refit"] = make(self.subject, self.choose, batch_size=how["batch_size"])
        frames, notes = held_out_curves(self.subject, judged, name, **how)
        steps = [_as_steps(frame, name) for frame in frames]
        return pd.concat(steps, ignore_index=True), notes

    def healed(
        self, sets: Mapping[int, Sequence[Head]], name: str
    ) -> tuple[pd.DataFrame, list[str]]:
        """Each set cut out and the rest trained on for a while, against the whole model."""
        # A task of somebody's own gives a loss and nothing that a teacher could be compared by.
        teacher = None if isinstance(self.choose, Custom) else self.subject
        size = self.training.batch_size
        whole = cache(lambda place: self.judges[place].evaluate(self.subject, batch_size=size))
        rows: list[list[dict[str, object]]] = [[] for _ in self.judges]
        notes: list[str] = []
        for order, keep in zip(_orders(sets, name), sets, strict=True):
            if (unit := f"healed {keep}") not in self.journal.done:
                how = self._training(keep)
                small = prune(self.subject, sets[keep])
                small = heal(small, self.choose, teacher=teacher, **how.options()).subject
                curves = [
                    trained_curve(self.subject, small, judge, order, size, how.seed, whole(number))
                    for number, judge in enumerate(self.judges)
                ]
                self._done(unit, [[frame.to_dict("records"), more] for _, frame, more in curves])
            for own, (new, more) in zip(rows, self.journal.done[unit], strict=True):
                own += new
                notes += more
        frames = [_as_steps(pd.DataFrame(own), name) for own in rows]
        return pd.concat(frames, ignore_index=True), notes

    def _training(self, keep: int) -> TrainingOptions:
        """One of several trainings."""
        return replace(self.training, checkpoint=self.folder / str(keep))

    def _done(self, unit: str, result: object) -> None:
        self.journal.append(unit, result)
        self.folder.remove_all()


def _orders(sets: Mapping[int, Sequence[Head]], name: str) -> list[Order]:
    """An order of one step for each set: sets need not lie within each other."""
    return [Order(f"{name} {keep}", "all", (tuple(going),)) for keep, going in sets.items()]


def _as_steps(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Curves of one point each as one curve: the whole model, then a step a set."""
    points = frame[frame["step"] > 0].sort_values("heads_left", ascending=False, kind="stable")
    points = points.assign(step=range(1, len(points) + 1))
    return pd.concat([frame.iloc[:1], points], ignore_index=True).assign(order=name)


def sets_of_order(curve: pd.DataFrame, heads: int) -> HeadSets:
    """The steps of a curve's first order that leave about as many heads as `sizes` asks for."""
    rows = curve[(curve["order"] == curve["order"].iloc[0]) & (curve["scope"] == "all")]
    rows = rows[(rows["metric"] == rows["metric"].iloc[0]) & ~rows["healed"].astype(bool)]
    rows = rows.sort_values("step")
    left = rows.loc[rows["step"] > 0, "heads_left"].tolist()
    sets = HeadSets()
    for size in sizes(heads):
        nearest = min(left, key=lambda one: abs(one - size))
        gone = rows.loc[rows["heads_left"] >= nearest, "removed"]
        sets[int(nearest)] = tuple(parse_heads(",".join(filter(None, gone))))
    return sets


# --- Prunings in which weights learn: by gates that close, and by healing what is left ----------


def gates_plan(
    subject: Subject,
    task: Task,
    training: TrainingOptions,
    *,
    price: float | None = None,
    keep: int | None = None,
    stacks: Sequence[str] | None = None,
    train: str = "all",
    judge: Task | None = None,
    convention: str = "headcount",
) -> tuple[Plan, Subject | None]:
    """Learn gates on one half of a task, and judge the model without the closed heads on the other.

    `price` is the paper's lambda; `keep` instead drives it to so many heads, and the most open ones
    stay: exactly so many, unless heads can only go together. Gives the plan, whose curve has the
    whole model and the trained one, and the model that is left, if any head goes. `judge` is a task
    to judge by, in place of the second half.
    """
    choose, held_out = task.split(0.5, training.seed) if judge is None else (task, judge)
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
    # However many gates are open when training ends, so many as were asked for stay.
    going, small = tuple(learned.gates.closed(keep)), learned.prune(keep)
    order = Order("gates", "all", (going,) if going else ())
    sweep, frame, notes = trained_curve(
        subject, small, held_out, order, training.batch_size, training.seed
    )
    notes = [*learned.notes, *notes]
    left = len(learned.gates.heads) - len(going)
    if keep is not None and left < keep:
        notes.append(f"{left} heads stay where {keep} were asked for: some can only go together.")
    plan = Plan(
        going, Goal(keep=keep), (order,), len(order), frame, sweep, None, tuple(notes), choose
    )
    return plan, small if going else None


def healed_plan(
    plan: Plan, subject: Subject, small: Subject, training: TrainingOptions
) -> tuple[Plan, Subject]:
    """Train what is left with the whole model as the teacher, and add the result to the curve."""
    examples = training.task or plan.choose
    assert examples is not None  # or it would learn from what it is judged on
    healed = heal(small, examples, teacher=subject, **training.options()).subject
    first = plan.orders[0]
    order = Order(first.name, first.scope, (plan.going,))
    _, frame, notes = trained_curve(
        subject, healed, plan.sweep.task, order, training.batch_size, training.seed
    )
    point = frame[frame["step"] == 1].assign(step=plan.step, removed="")
    curve = pd.concat([plan.curve, point], ignore_index=True)
    return replace(plan, curve=curve, notes=(*plan.notes, *notes)), healed


# --- What learned gates free, and what healing gives back ----------------------------------------


def gates_stage(context: StoryContext) -> StoryStage:
    """Heads that gates choose, learned on one half with frozen weights, judged on the other."""
    return _size_stage(context, "gates", "What learned gates free", context.gates)


def heal_stage(context: StoryContext) -> StoryStage:
    """The model without these heads, or those of the curve where no gates chose, trained on."""
    return _size_stage(context, "healed", "What healing gives back", context.heal)


def refit_stage(context: StoryContext) -> StoryStage:
    """The model without the same heads, what is left solved for anew on the half that chooses."""
    return _size_stage(context, "refitted", "What refitting gives back", 0)


def _size_stage(context: StoryContext, name: str, title: str, steps: int) -> StoryStage:
    why = context.why_no_task if context.task is None else too_few(context.task)
    if context.task is None or why:
        return StoryStage(name, title, why_not=why)
    halves = halves_of(context, context.task)
    run, gated = context.run, context.gates
    if not gated and "gates" in run.frames:  # they learned before
        gated = run.stages["gates"]["settings"]["steps"]
    by = "gates" if gated else "gradient"
    settings = {**context.about_task(halves.task), "steps": steps, "by": by, "gates": gated}
    settings |= {"batch_size": context.batch_size}
    settings |= {} if halves.own is None else {"own": halves.own.hash}

    def work() -> list[str]:
        training = TrainingOptions(steps, batch_size=context.batch_size, seed=context.seed or 0)
        with context.journal(name, title, settings) as journal:
            parts = (context.subject, halves.choose, halves.judges, training)
            study = SizeStudy(*parts, journal, run.shards(name))
            if name == "gates":
                sets, notes = study.gates()
                frame, more = study.judged(sets, by)
            else:
                kept = run.read_frame("gates" if gated else "curve")
                sets = sets_of_frame(kept) if gated else sets_of_order(kept, len(context.heads))
                notes = []
                if name == "refitted":
                    frame, more = study.judged(sets, by, refit=True)
                else:
                    frame, more = study.healed(sets, by)
            run.write_frame(name, frame)
        run.drop_shards(name)
        return list(dict.fromkeys([*notes, *more]))

    # Forward and backward of each step, and for healing the teacher's forward.
    each = context.batch_size * (3.0 if name == "gates" else 4.0) * steps
    count = len(sizes(len(context.heads)))
    runs = [(evaluation_step(context, judge), float(count * len(judge))) for judge in halves.judges]
    runs.append((evaluation_step(context, halves.judges[0]), count * each))
    return StoryStage(name, title, settings, work, halves.task, tuple(runs))


GATES = StageMaker(gates_stage, after="can-go", wanted=lambda context: bool(context.gates))
REFIT = StageMaker(refit_stage, after="gates", wanted=lambda context: context.refit)
HEAL = StageMaker(heal_stage, after="gates", wanted=lambda context: bool(context.heal))


def trained_curve(
    subject: Subject,
    small: Subject,
    task: Task,
    order: Order,
    batch_size: int,
    seed: int,
    whole: Outcome | None = None,
) -> tuple[Sweep, pd.DataFrame, list[str]]:
    """The whole model and a trained one on the same examples, as a curve of one point."""
    whole = whole or task.evaluate(subject, batch_size=batch_size)
    points = [Intervention(order.gone(1), name=point_name(order, 1))] if order.steps else []
    outcomes = [task.evaluate(small, batch_size=batch_size) for _ in points]
    found = Sweep(task, tuple(points), whole, tuple(outcomes), len(task), fast=False)
    frame, notes = curve_frame(found, [order], subject, part="held-out", seed=seed)
    frame["healed"] = frame["step"] > 0  # its weights have learned
    return found, frame, notes
