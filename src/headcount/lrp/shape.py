"""Small things that every rule needs: sums that fit a shape, denominators that are not zero."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["grouped", "over", "per_example", "repeated", "summed_to"]

#: So small that no activation of a trained model is near it.
TINY = 1e-9


def over(relevance: Tensor, total: Tensor, eps: float = TINY) -> Tensor:
    """Relevance divided by a sum that may be zero: `eps` of the sum's own sign is added.

    >>> over(torch.tensor([1.0, 1.0]), torch.tensor([0.5, -0.25]))
    tensor([ 2., -4.])
    """
    return relevance / (total + torch.copysign(total.new_tensor(eps), total))


def per_example(tensor: Tensor) -> Tensor:
    """Summed over all axes but the first, which is kept so that it still broadcasts.

    >>> per_example(torch.ones(2, 3, 4)).shape
    torch.Size([2, 1, 1])
    """
    return tensor.sum(dim=tuple(range(1, tensor.dim())), keepdim=True)


def summed_to(tensor: Tensor, shape: torch.Size) -> Tensor:
    """Summed over the axes along which something of this shape was repeated.

    >>> summed_to(torch.ones(2, 3), torch.Size([1])).tolist()
    [6.0]
    """
    extra = tensor.dim() - len(shape)
    stretched = [
        extra + axis for axis, size in enumerate(shape) if size == 1 != tensor.shape[extra + axis]
    ]
    axes = [*range(extra), *stretched]
    return tensor.sum(dim=axes, keepdim=True).reshape(shape) if axes else tensor


def repeated(tensor: Tensor, heads: int) -> Tensor:
    """Keys or values `[..., key head, key, dim]` once for every query head that reads them."""
    return tensor.repeat_interleave(heads // tensor.shape[-3], dim=-3)


def grouped(tensor: Tensor, heads: int) -> Tensor:
    """The reverse for relevance: summed over the query heads that read the same key head."""
    apart = tensor.reshape(*tensor.shape[:-3], heads, -1, *tensor.shape[-2:])
    return apart.sum(dim=-3)
