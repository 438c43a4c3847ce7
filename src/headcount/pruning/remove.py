"""Remove heads for good: a smaller model that computes what the whole one computes without them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy

from headcount.errors import UsageError
from headcount.head_sets import check_once
from headcount.heads import Head, check_heads
from headcount.pruning.check_removed import check_removed
from headcount.pruning.cut import cut
from headcount.pruning.keep import keeps
from headcount.pruning.named import Heads, named_heads
from headcount.subject import Subject

__all__ = ["prune", "read_heads"]


def prune(subject: Subject, heads: Heads) -> Subject:
    """A copy of the subject without these heads; the subject itself is left alone.

    `heads` are names (`"enc.0.1,enc.3"`, or a list), layers with their heads (`{0: [1, 2]}`, for
    an encoder-decoder `{"enc": {0: [1]}}`), or rows of a table's frame.
    Rows of the query, key and value projections and columns of the output projection are cut.
    A layer that loses all heads keeps its residual and its bias. The heads that are left keep
    their names. Before it is returned, the copy is run beside the subject with these heads shut.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> small = prune(Subject(BertModel(config), name="mine"), "enc.0.1,enc.0.2")
    >>> small, [str(head) for head in small.heads]
    (Subject(mine without 2 heads: BertModel, 1 layers x 2 heads enc, float32 on cpu),
     ['enc.0.0', 'enc.0.3'])
    """
    _check_subject(subject)
    going = read_heads(heads, subject.heads)
    _refuse_adapter(subject)
    _warn_of_older_tool(subject)
    kept = keeps(subject.anatomy, going)
    model = deepcopy(subject.model)
    cut(model, kept, subject.anatomy.sites)
    small = Subject(
        model,
        subject.tokenizer,
        name=f"{subject.name} without {len(going)} head{'' if len(going) == 1 else 's'}",
        source=subject.source,
        revision=subject.revision,
        notes=[*subject.notes, _note(subject, going)],
    )
    check_removed(subject, small, going)
    return small


def read_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """The heads to remove, in the model's order: each exists, each is named once, some stay."""
    named = named_heads(heads, known)
    check_heads(named, known)
    check_once(named)
    if len(named) == len(known):
        raise UsageError(
            f"All {len(known)} heads of the model would go; leave at least one, or measure the "
            "model without attention with hc.valve."
        )
    gone = set(named)
    return [head for head in known if head in gone]


def _check_subject(subject: object) -> None:
    if not isinstance(subject, Subject):
        raise UsageError(
            f"prune takes a Subject, not {type(subject).__name__}; make one with hc.load(name) or "
            "hc.Subject(model, tokenizer), or cut the model itself with hc.prune_heads."
        )


def _refuse_adapter(subject: Subject) -> None:
    if subject.model is not subject.inner:
        raise UsageError(
            f"{subject.name} is wrapped in an adapter ({type(subject.model).__name__}), and heads "
            "are removed from plain layers only; merge first: model = model.merge_and_unload()."
        )


def _warn_of_older_tool(subject: Subject) -> None:
    listed = getattr(subject.inner.config, "pruned_heads", None)
    if listed:
        warnings.warn(
            f"The config of {subject.name} lists pruned_heads {listed}, which transformers 5 "
            "ignores: these heads are there and count as any other.",
            stacklevel=3,
        )


def _note(subject: Subject, going: Sequence[Head]) -> str:
    return f"{len(going)} of {len(subject.heads)} heads of {subject.name} were removed."
