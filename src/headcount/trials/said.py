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


def said(subject: Subject, batch: Batch, last: int = 0) -> Tensor:
    """Logits ``[row, token, word]`` of a batch, with gradients where they are wanted.

    With `last`, those of the last so many tokens are enough; count from the end.
    """
    wanted: dict[str, Any] = {"use_cache": False, "logits_to_keep": last}
    intake = intake_of(subject.model)
    options = {name: value for name, value in wanted.items() if intake.accepts(name)}
    with at_rest(subject.model):
        logits: Tensor = subject.model(**batch.to(subject.device).inputs, **options).logits
    return logits
