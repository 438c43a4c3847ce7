"""Row quantities of an attention map: one number for each query, or a few.

Everything here is a plain function of the map, so that the definitions can be read and
tested alone, and replaced by a fused kernel later.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["at_offset", "class_masses", "entropy", "smoothed_entropy", "top", "visible_keys"]


def entropy(maps: Tensor) -> Tensor:
    """Entropy of each row in nats, `[batch, head, query]`.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, -0.0000])
    """
    # p log p with the logarithm of the smallest number at 0, in one spare map: torch.special.entr
    # is exact there too, but several times slower on a CPU.
    spare = maps.clamp_min(torch.finfo(maps.dtype).tiny)
    return spare.log_().mul_(maps).sum(-1).neg_()


def smoothed_entropy(maps: Tensor, amount: float, real: Tensor) -> Tensor:
    """Entropy of (1-s) a + s/n over the n real keys, as Clark's program has it (s = 0.0001)."""
    share = amount / real.sum(-1, dtype=maps.dtype)[:, None, None, None]
    mixed = maps * (1 - amount) + share * real[:, None, None, :]
    return entropy(mixed)


def top(maps: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and key of each row's largest weight among the allowed keys `[batch, key]`."""
    weight, key = (maps * allowed[:, None, None, :].to(maps.dtype)).max(dim=-1)
    return weight, key


def class_masses(maps: Tensor, classes: Tensor) -> Tensor:
    """Mass on each class of keys, one matrix product: `[batch, head, query, class]`.

    `classes` is `[batch, class, key]`, 1 where the key belongs to the class.
    """
    batch, heads, queries, keys = maps.shape
    flat = maps.reshape(batch, heads * queries, keys)
    return torch.bmm(flat, classes.transpose(1, 2).to(maps.dtype)).view(
        batch, heads, queries, classes.shape[1]
    )


def at_offset(maps: Tensor, offset: int) -> Tensor:
    """Weight on the key at query + offset, `[batch, head, query]`; 0 where there is no such key.

    >>> at_offset(torch.eye(3)[None, None], 0)
    tensor([[[1., 1., 1.]]])
    """
    queries = maps.shape[-2]
    diagonal = maps.diagonal(offset, dim1=-2, dim2=-1)
    before = max(0, -offset)
    after = queries - before - diagonal.shape[-1]
    return torch.nn.functional.pad(diagonal, (before, max(0, after)))[..., :queries]


def visible_keys(mask: Tensor | None, queries: int, keys: Tensor, causal: bool) -> Tensor:
    """How many keys each query may attend to, `[batch, query]`.

    Read from the attention mask where there is one (sliding windows differ by layer), else
    from the real keys `[batch, key]` and causality.
    """
    if mask is not None and mask.dim() == 4:
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return (allowed & keys[:, None, None, :]).sum(-1)[:, 0].expand(keys.shape[0], queries)
    if causal:
        return keys.cumsum(-1)[:, :queries]
    return keys.sum(-1, keepdim=True).expand(-1, queries)


def uniform_entropy(visible: Tensor) -> Tensor:
    """What uniform attention over the visible keys would give: ln of their number."""
    return visible.clamp_min(1).to(torch.float64).log()
