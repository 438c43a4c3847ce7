"""`model.prune_heads` of transformers 4, which transformers 5 took away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headcount.errors import UsageError
from headcount.pruning.cut import cut
from headcount.pruning.keep import keeps
from headcount.pruning.named import named_heads
from headcount.pruning.remove import prune
from headcount.subject import Subject

__all__ = ["prune_heads"]

ByLayer = Mapping[int, Iterable[int]]


def prune_heads(model: Any, heads: ByLayer | Mapping[str, ByLayer]) -> Any:
    """Remove heads from a transformers model in place, and give it back.

    `heads` is ``{layer: [heads]}``, for an encoder-decoder ``{"enc": {layer: [heads]}}``. Numbers
    are those that heads were born with, also when some were removed before. `hc.prune` leaves
    the model alone and gives a copy.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model = prune_heads(BertModel(config), {0: [1, 2], 1: [0]})
    >>> [layer.attention.self.num_attention_heads for layer in model.encoder.layer]
    [2, 3]
    """
    subject = Subject(model)
    if not isinstance(heads, Mapping):
        raise UsageError(
            f"prune_heads takes layers with their heads, {{0: [1, 2]}}, not {heads!r}; hc.prune "
            "takes names."
        )
    going = list(dict.fromkeys(named_heads(heads, subject.heads)))
    prune(subject, going)  # a copy is cut and compared first: the model changes only if that holds
    cut(model, keeps(subject.anatomy, going), subject.anatomy.sites)
    return model
