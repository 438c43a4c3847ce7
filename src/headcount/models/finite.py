"""Tell which weight is broken when a model answers with NaN."""

from __future__ import annotations

from typing import NoReturn

import torch

from headcount.errors import ModelError
from headcount.subject import Subject

__all__ = ["check_finite", "refuse_nan"]


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
        if not isinstance(weight, torch.Tensor) or not weight.is_floating_point():
            continue  # quantised layers keep packed weights here, which cannot hold NaN
        broken = int((~torch.isfinite(weight.float())).sum())
        if broken:
            raise ModelError(
                f"The weight {name} of {subject.name} holds {broken} values of {weight.numel()} "
                "that are NaN or infinite; the checkpoint is broken, or its dtype too narrow: "
                "try dtype float32, or fetch it again."
            )


def refuse_nan(subject: Subject, where: str) -> NoReturn:
    """Raise for attention that is not a number, naming the weight to blame where there is one."""
    check_finite(subject)
    raise ModelError(
        f"The attention at {where} of {subject.name} is not a number, although all weights are; "
        f"{str(subject.dtype).removeprefix('torch.')} may be too narrow: use --dtype float32 "
        "(dtype='float32')."
    )
