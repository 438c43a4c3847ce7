"""The numbers a valve multiplies heads by, read from whatever the caller has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.heads import Head, check_heads, parse_head

__all__ = ["ScalesLike", "read_scales"]

ScalesLike = Mapping[str, Any] | Mapping[Head, Any] | Tensor


def read_scales(scales: ScalesLike, heads: list[Head]) -> Tensor:
    """One scale a head, `[head]`, or one a head and example, `[batch, head]`.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> read_scales({"enc.0.1": 0.0}, heads)
    tensor([1., 0.])
    """
    if isinstance(scales, Tensor):
        return _check_shape(scales, len(heads))
    if not isinstance(scales, Mapping):
        raise UsageError(
            f"Scales are a mapping such as {{'enc.0.3': 0.0}} or a tensor [head] or [batch, head], "
            f"not a {type(scales).__name__}."
        )
    named = {parse_head(name): _number(name, value) for name, value in scales.items()}
    check_heads(named, heads)
    return _stack(named, heads)


def _number(head: object, value: Any) -> Tensor:
    """One head's scale, or scales, as a tensor."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"The scale of {head} is {value!r}; give a number, or one a sentence of the batch."
        ) from None


def _stack(named: dict[Head, Tensor], heads: list[Head]) -> Tensor:
    """Columns in the order of the heads; gradients flow to the values that were given."""
    for head, value in named.items():
        if value.dim() > 1 or not value.numel():
            raise UsageError(
                f"The scale of {head} has shape {tuple(value.shape)}; give one number, "
                "or one a sentence of the batch."
            )
    _check_examples({head: len(value) for head, value in named.items() if value.dim()})
    device = next((value.device for value in named.values()), torch.device("cpu"))
    one = torch.ones((), device=device)
    columns = [named[head].to(device) if head in named else one for head in heads]
    columns = [column if column.is_floating_point() else column.float() for column in columns]
    return torch.stack(torch.broadcast_tensors(*columns), dim=-1)


def _check_examples(counts: dict[Head, int]) -> None:
    """Heads with a scale for each example must have as many."""
    (first, count), *others = counts.items() or [(None, 0)]
    for head, other in others:
        if other != count:
            raise UsageError(
                f"{first} has scales for {count} examples and {head} for {other}; give as many as "
                "the batch has."
            )


def _check_shape(scales: Tensor, count: int) -> Tensor:
    if scales.dim() not in (1, 2) or scales.shape[-1] != count or not len(scales):
        raise UsageError(
            f"A tensor of scales has shape [{count}] or [batch, {count}] for this model's {count} "
            f"heads, not {tuple(scales.shape)}."
        )
    return scales if scales.is_floating_point() else scales.float()
