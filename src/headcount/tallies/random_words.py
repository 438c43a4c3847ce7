"""What words drawn at random would get: the expected largest of so many weights."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["expected_largest", "largest_shares"]


def largest_shares(pool: Tensor, drawn: Tensor) -> Tensor:
    """How likely each place in the order is the largest of a draw, ``[batch, draw, place]``.

    `pool` is bool ``[batch, place]``, `drawn` ``[batch, draw]`` says how many places are drawn, all
    subsets equally likely: the i-th smallest of m is the largest of k in C(i-1, k-1) of C(m, k).

    >>> pool = torch.tensor([[True, True, True, False]])
    >>> largest_shares(pool, torch.tensor([[1, 2]])).round(decimals=2).tolist()
    [[[0.33, 0.33, 0.33, 0.0], [0.0, 0.33, 0.67, 0.0]]]
    """
    rank = torch.arange(1, pool.shape[-1] + 1, device=pool.device, dtype=torch.float64)
    size, count = pool.sum(-1)[:, None, None].double(), drawn[..., None].double()
    share = (_choose(rank - 1, count - 1) - _choose(size, count)).exp()
    possible = (rank >= count) & (rank <= size) & (count > 0)
    return torch.where(possible, share, 0.0)


def expected_largest(weights: Tensor, pool: Tensor, shares: Tensor) -> Tensor:
    """The expected largest weight of each draw, ``[batch, head, draw]``; 0 where nothing is drawn.

    >>> weights, pool = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.ones(1, 3, dtype=torch.bool)
    >>> expected_largest(weights, pool, largest_shares(pool, torch.tensor([[2]]))).tolist()
    [[[2.66...]]]
    """
    ordered = weights.masked_fill(~pool[:, None], torch.inf).sort(dim=-1).values
    known = ordered.masked_fill(ordered.isinf(), 0.0)
    return known @ shares.to(known.dtype).transpose(1, 2)


def _choose(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of n over k; of no meaning outside 0 <= k <= n."""
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma((n - k).clamp_min(0) + 1)
