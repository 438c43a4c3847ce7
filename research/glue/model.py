"""The classifier: a pretrained encoder with its own pooler, and a fresh head on top."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from headcount.models.subject import Subject

from .encoded import Batch

__all__ = ["build", "draw_all", "draw_head", "logits_of"]


def build(subject: Subject, outputs: int) -> Any:
    """The subject's encoder in a sequence classifier with so many outputs."""
    config = copy.deepcopy(subject.inner.config)
    config.num_labels = outputs
    model = AutoModelForSequenceClassification.from_config(config)
    model.base_model.load_state_dict(subject.inner.state_dict())
    return model.float()


def draw_head(model: Any, seed: int) -> None:
    """Draw the weights above the encoder afresh: BERT's normal of 0.02, biases 0."""
    _draw(model, seed, model.base_model_prefix + ".")


def draw_all(model: Any, seed: int) -> None:
    """Draw every weight afresh, the encoder's too; norms begin at 1 and biases at 0."""
    _draw(model, seed, None)


def _draw(model: Any, seed: int, kept: str | None) -> None:
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if kept is not None and name.startswith(kept):
                continue
            drawn = torch.randn(weight.shape, generator=dice) * 0.02
            flat = torch.full_like(drawn, float(name.endswith("weight")))
            weight.copy_(drawn if weight.dim() > 1 else flat)


def logits_of(model: Any, batch: Batch) -> Tensor:
    """The model's outputs, `[row, output]`.

    The attention mask has four axes already: transformers takes such a one as it is, whereas
    it looks into a flat one to see whether it can be dropped, and a device that records cannot
    be looked into.
    """
    mask = batch.real[:, None, None, :].expand(-1, -1, batch.real.shape[1], -1)
    found = model(input_ids=batch.ids, token_type_ids=batch.types, attention_mask=mask)
    logits: Tensor = found.logits
    return logits
