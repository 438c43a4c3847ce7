"""The same heads from scratch: what a pruned model's shape is worth without what it had learned.

Voita et al. 2019 (Table 2): the pruned model's configuration, trained from random weights, stays
behind the model that was pruned after training.
"""

from __future__ import annotations

from collections.abc import Iterable

from headcount.head_sets import heads_named
from headcount.heads import Head, check_heads, parse_heads
from headcount.models.twin import random_twin
from headcount.pruning.remove import prune
from headcount.subject import Subject

__all__ = ["scratch"]


def scratch(subject: Subject, heads: str | Iterable[str | Head], *, seed: int = 0) -> Subject:
    """The subject's shape with random weights and only these heads; `heal` trains it.

    Weights are drawn for the whole model by its own initialisation, then the other heads are cut
    out: each head that is left begins as it would in the whole model.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> scratch(Subject(BertModel(config), name="mine"), "enc.0.1-2").name
    'random twin 0 of mine without 2 heads'
    """
    known = subject.heads
    kept = heads_named(heads, known) if isinstance(heads, str) else parse_heads(heads)
    check_heads(kept, known)
    gone = [head for head in known if head not in set(kept)]
    twin = random_twin(subject, seed=seed)
    return prune(twin, gone) if gone else twin
