"""The same texts for two models, token by token; refused where they cut them differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headcount.errors import InputError, UsageError
from headcount.subject import Subject
from headcount.text import Batch, encode, intake_of
from headcount.text.encode import Long
from headcount.text.side import Side

__all__ = ["batches_of_both", "widened"]


def batches_of_both(
    first: Subject,
    second: Subject,
    texts: Sequence[Any],
    *,
    stacks: tuple[str, ...],
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
) -> Iterator[tuple[Batch, Batch]]:
    """The same batch as each model takes it."""
    longest = max_length or _longest(first, second)
    made = [
        encode(
            texts,
            subject.tokenizer,
            stacks=stacks,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
            max_length=longest,
            long=long,
        )
        for subject in (first, second)
    ]
    for ours, theirs in zip(*made, strict=False):
        _check_same(first, second, ours, theirs)
        yield ours, theirs


def _longest(first: Subject, second: Subject) -> int | None:
    """The limit that both keep, where they have different ones."""
    limits = [
        (intake.source_limit, intake.target_limit)
        for intake in (intake_of(one.model, one.tokenizer) for one in (first, second))
    ]
    known = [limit for pair in limits for limit in pair if limit is not None]
    return min(known) if limits[0] != limits[1] and known else None


def _check_same(first: Subject, second: Subject, ours: Batch, theirs: Batch) -> None:
    for name, side in ours.sides.items():
        other = theirs.sides.get(name)
        if other is not None and ours.index == theirs.index and side.tokens == other.tokens:
            continue
        raise InputError(
            f"{first.name} and {second.name} cut the texts into different tokens"
            f"{_shown(side, other)}, so their attention cannot be laid side by side; "
            "compare models of one tokenizer."
        )


def _shown(side: Side, other: Side | None) -> str:
    """The first place where they differ."""
    if other is None:
        return ""
    for ours, theirs in zip(side.tokens, other.tokens, strict=False):
        for one, another in zip(ours, theirs, strict=False):
            if one != another:
                return f" ('{one}' and '{another}')"
    return ""


def widened(batch: Batch, width: int, pad_id: int) -> Batch:
    """The batch with all rows padded to a width, as Kovaleva et al.'s notebook has them."""
    there = batch.inputs["input_ids"].shape[1]
    if there > width:
        raise UsageError(
            f"A text has {there} tokens, and maps are padded to {width}; pad to more (--pad-to)."
        )
    inputs = {
        name: _wide(tensor, width, pad_id if name == "input_ids" else 0)
        for name, tensor in batch.inputs.items()
    }
    sides = {name: _wide_side(side, width, pad_id) for name, side in batch.sides.items()}
    return replace(batch, inputs=inputs, sides=sides)


def _wide(tensor: Tensor, width: int, fill: int) -> Tensor:
    more = width - tensor.shape[1]
    return torch.nn.functional.pad(tensor, (0, more), value=fill)


def _wide_side(side: Side, width: int, pad_id: int) -> Side:
    names = ("real", "special", "separator", "punctuation", "stops")
    flags: dict[str, Any] = {name: _wide(getattr(side, name), width, 0) for name in names}
    return replace(side, ids=_wide(side.ids, width, pad_id), words=None, **flags)
