"""What a model learns from a batch: the task's loss, and what a teacher would have said.

Hinton et al. 2015, section 2, at temperature 1: a share of the loss is the divergence of the
teacher's distribution from the learner's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from headcount.errors import UsageError
from headcount.models.rest import at_rest
from headcount.subject import Subject
from headcount.tasks.custom import Custom
from headcount.tasks.head_task import HeadTask
from headcount.tasks.regression import Regression
from headcount.tasks.similarity import Similarity
from headcount.tasks.task import Task
from headcount.tasks.token_loss import IGNORED, LOSS, labels_of
from headcount.text.batch import Batch

__all__ = ["Loss", "OwnLoss", "TaskLoss"]


class Loss(Protocol):
    """The loss of a batch, summed, and how many predictions it is over."""

    def __call__(self, subject: Subject, batch: Any) -> tuple[Tensor, Tensor]:
        """Sum and count; differentiable in the subject's weights."""


@dataclass(frozen=True)
class OwnLoss:
    """The loss that the model itself gives a batch with labels; every batch counts alike."""

    def __call__(self, subject: Subject, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The model's mean loss, over one prediction."""
        here = {n: v.to(subject.device) if isinstance(v, Tensor) else v for n, v in batch.items()}
        loss = subject.model(**here).loss
        return loss, torch.ones((), device=loss.device)


@dataclass(frozen=True)
class TaskLoss:
    """A task's loss, its labels smoothed and a `share` of it from a teacher where there is one."""

    task: Task
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what the task cannot give."""
        for name, value in (("share", self.share), ("label smoothing", self.smoothing)):
            if not 0 <= value <= 1:
                raise UsageError(f"The {name} is {value:g}; it lies between 0 and 1.")
        if self.smoothing and _gives_numbers(self.task):
            raise UsageError(
                f"A {self.task.kind} task has no classes whose labels can be smoothed."
            )
        if self.teacher is not None and isinstance(self.task, Custom):
            raise UsageError(
                "A custom task gives its loss and nothing that a teacher could be compared by; "
                "train without a teacher, or use a task of another kind."
            )

    def __call__(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        """Nats (or squared errors) summed over what is to be predicted, and how much that is."""
        if isinstance(self.task, Custom):
            losses = self.task.loss(subject, batch)
            return losses.sum(), losses.new_tensor(len(losses))
        if _gives_numbers(self.task):
            return self._numbers(subject, batch)
        return self._classes(subject, batch)

    def _numbers(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        said = self.task.answer(subject, batch).float()
        own = (said - self._gold(batch, said)).square().sum()
        taught = self._taught(batch)
        apart = None if taught is None else (said - taught.to(said)).square().sum()
        return self._mixed(own, apart), said.new_tensor(len(said))

    def _classes(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        logits = _logits(self.task, subject, batch)
        real = labels_of(batch, logits) != IGNORED
        said, labels = logits[real].float(), labels_of(batch, logits)[real]
        own = cross_entropy(said, labels, reduction="sum", label_smoothing=self.smoothing)
        taught = self._taught(batch)
        apart = None if taught is None else _divergence(said, taught.to(real.device)[real])
        return self._mixed(own, apart), real.sum()

    def _mixed(self, own: Tensor, apart: Tensor | None) -> Tensor:
        return own if apart is None else (1 - self.share) * own + self.share * apart

    def _gold(self, batch: Batch, like: Tensor) -> Tensor:
        gold = labels_of(batch, like)
        if isinstance(self.task, Similarity):
            low, high = self.task.span
            return (gold - low) / (high - low)
        return gold

    def _taught(self, batch: Batch) -> Tensor | None:
        """What the teacher says, at rest and without gradients."""
        if self.teacher is None or not self.share:
            return None
        with torch.no_grad(), at_rest(self.teacher.model):
            if _gives_numbers(self.task):
                return self.task.answer(self.teacher, batch).float()
            return _logits(self.task, self.teacher, batch)


def _gives_numbers(task: Task) -> bool:
    return isinstance(task, Regression | Similarity)


def _logits(task: Task, subject: Subject, batch: Batch) -> Tensor:
    """Logits where labels stand; nothing is translated or argued about on the way."""
    if isinstance(task, HeadTask):
        return task.logits(subject, batch)
    found: Tensor = replace(task, metric=LOSS).answer(subject, batch)
    return found


def _divergence(said: Tensor, taught: Tensor) -> Tensor:
    if said.shape != taught.shape:
        raise UsageError(
            f"The teacher has {taught.shape[-1]} classes or words and the learner "
            f"{said.shape[-1]}; give the model that the heads were removed from."
        )
    learned, told = said.log_softmax(-1), taught.float().log_softmax(-1)
    return kl_div(learned, told, reduction="sum", log_target=True)
