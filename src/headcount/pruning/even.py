"""As many heads from every layer: what a speed can be asked of before anything was scored."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.pruning.bench_options import check_share
from headcount.subject import Subject

__all__ = ["even_heads"]


def even_heads(subject: Subject, share: float = 0.5) -> list[Head]:
    """The last share of the heads of every layer, in whole groups that share keys and values.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> [str(head) for head in even_heads(Subject(BertModel(config)))]
    ['enc.0.2', 'enc.0.3']
    """
    check_share(share)
    going = []
    for site in subject.anatomy.sites:
        groups = round(site.kv_heads * share)
        size = site.heads // site.kv_heads
        going += site.names[len(site.names) - min(groups, site.kv_heads - 1) * size :]
    if not going:
        raise UsageError(
            f"{subject.name} has no layer from which {share:.0%} of the heads can go; give a "
            "larger share, or a model that was pruned."
        )
    return going
