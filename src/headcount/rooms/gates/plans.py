"""Prunings in which weights learn: by gates that close, and by healing what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from headcount.models import Subject
from headcount.pruning import Goal, Order, Plan, TrainingOptions, trained_curve
from headcount.rooms.gates.learning import heal, learn_gates
from headcount.tasks import Task


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
