"""One forward of the whole model: its logits, or one sentence that says what it gives instead."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from headcount.errors import ModelError
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.text.intake import intake_of

__all__ = ["forward", "logits_of", "refuse"]


def forward(subject: Subject, batch: Batch, **options: Any) -> Any:
    """The model's output for a batch, on the model's device; nothing is cached on the way."""
    if intake_of(subject.model).accepts("use_cache"):
        options["use_cache"] = False
    return subject.model(**batch.to(subject.device).inputs, **options)


def logits_of(subject: Subject, batch: Batch, *, axes: int, needs: str) -> Tensor:
    """The logits of a batch, of so many axes; a model that gives others is refused."""
    logits = getattr(forward(subject, batch), "logits", None)
    if not isinstance(logits, Tensor) or logits.dim() != axes:
        raise refuse(subject, needs)
    return logits


def refuse(subject: Subject, needs: str) -> ModelError:
    """The error for a model of the wrong kind for a task."""
    return ModelError(
        f"{needs}, and {subject.name} is of the class {type(subject.inner).__name__}."
    )
