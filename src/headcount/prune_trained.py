"""Prunings in which weights learn: gates that close while a model trains, and healing afterwards.

Voita et al. 2019, section 6, and Hinton et al. 2015. What is learned from is never judged on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.progress import Progress
from headcount.prune_plan import Plan
from headcount.pruning.curve import curve_frame, point_name
from headcount.pruning.goal import Goal
from headcount.pruning.heal import heal
from headcount.pruning.learn import learn_gates
from headcount.pruning.order import Order
from headcount.subject import Subject
from headcount.sweeps import Intervention, Sweep
from headcount.tasks.outcome import Outcome
from headcount.tasks.task import Task

__all__ = ["Training", "gates_plan", "healed_plan"]


@dataclass(frozen=True)
class Training:
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
    training: Training,
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
    plan: Plan, subject: Subject, small: Subject, training: Training
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
