"""Tell which weight is broken when a model answers with NaN."""

from __future__ import annotations

import torch

from headcount.errors import ModelError
from headcount.subject import Subject

__all__ = ["check_finite"]


def check_finite(subject: Subject) -> None:
    """Raise `ModelError` that names the first weight holding NaN or infinity, if there is one.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model = BertModel(config)
    >>> _ = model.pooler.dense.bias.data.fill_(float("nan"))
    >>> check_finite(Subject(model, name="mine"))
    Traceback (most recent call last):
    headcount.errors.ModelError: The weight pooler.dense.bias of mine holds 16 values of 16 that ...
    """
    for name, weight in subject.model.state_dict().items():
        if not weight.is_floating_point():
            continue
        broken = int((~torch.isfinite(weight.float())).sum())
        if broken:
            raise ModelError(
                f"The weight {name} of {subject.name} holds {broken} values of {weight.numel()} "
                "that are NaN or infinite; the checkpoint is broken, or its dtype too narrow: "
                "try dtype float32, or fetch it again."
            )
