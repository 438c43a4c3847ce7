"""What a model says next: its logits, where it has a head that speaks."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from headcount.models.rest import at_rest
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.text.intake import intake_of

__all__ = ["said", "speaks"]


def speaks(subject: Subject) -> bool:
    """Whether the model predicts tokens: it has a layer from hidden states to words."""
    return subject.inner.get_output_embeddings() is not None


def said(subject: Subject, batch: Batch) -> Tensor:
    """Logits ``[row, token, word]`` of a batch, with gradients where they are wanted."""
    options: dict[str, Any] = {}
    if intake_of(subject.model).accepts("use_cache"):
        options["use_cache"] = False
    with at_rest(subject.model):
        logits: Tensor = subject.model(**batch.to(subject.device).inputs, **options).logits
    return logits
