"""Token ids that a model can embed; others would end in an index error, or worse on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from headcount.errors import ModelError
from headcount.subject import Subject

__all__ = ["check_ids", "known_ids"]


def check_ids(subject: Subject, inputs: Mapping[str, Tensor]) -> None:
    """Raise when the tokenizer made an id that the model has no embedding for."""
    for name in ("input_ids", "decoder_input_ids"):
        ids = inputs.get(name)
        rows = known_ids(subject, name)
        if ids is not None and rows is not None and ids.numel() and int(ids.max()) >= rows:
            raise ModelError(
                f"{name} holds the token id {int(ids.max())} and {subject.name} embeds {rows}, "
                "from 0: this is not the tokenizer that the model was trained with."
            )


def known_ids(subject: Subject, name: str) -> int | None:
    """How many tokens the side's embedding knows; none where that cannot be told."""
    model: Any = subject.inner
    if name == "decoder_input_ids":
        model = model.get_decoder() if hasattr(model, "get_decoder") else None
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (AttributeError, NotImplementedError):
        return None
