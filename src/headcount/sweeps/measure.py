"""What a sweep measures: the task's loss, or the task's own metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.custom import Custom
from headcount.tasks.lm import LanguageModelling
from headcount.tasks.mlm import MaskedLanguageModelling
from headcount.tasks.task import Task
from headcount.tasks.token_loss import LOSS, MEAN_LOSS
from headcount.tasks.translation import Translation

__all__ = ["Measured", "measured"]

#: "loss" is teacher-forced; "task" is the metric that the task has.
Measured = Literal["loss", "task"]

_OF_TOKENS = (Translation, LanguageModelling, MaskedLanguageModelling)


def measured(task: Task, metric: Measured | None = None) -> Task:
    """The task with the metric of a sweep: by default its loss, where it has one.

    >>> from headcount.tasks import translation
    >>> measured(translation([("Rain fell.", "Regen fiel.")]))
    Translation('examples in hand', 1 examples, loss)
    """
    if metric not in (None, "loss", "task"):
        raise UsageError(f"The metric of a sweep is 'loss' or 'task', not {metric!r}.")
    if metric == "task" or task.metric.name == "loss":
        return task
    if isinstance(task, Custom):
        return _custom(task, metric)
    return replace(task, metric=LOSS if isinstance(task, _OF_TOKENS) else MEAN_LOSS)


def _custom(task: Custom, metric: Measured | None) -> Task:
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

    return replace(task, metric=MEAN_LOSS, score=loss)
