"""The rules of Voita et al.'s program of June 2019: positive weights, absolute values, kept totals.

alpha = 1, beta = 0, eps = 1e-7. Every relevance is made positive and scaled so that its total is
that of the relevance that came in. Signs are lost at every step; the total never is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.lrp.shape import grouped, repeated

__all__ = ["EPS", "z_plus_add", "z_plus_attention", "z_plus_dense", "z_plus_flow", "z_plus_keep"]

EPS = 1e-7


def z_plus_dense(
    x: Tensor, weight: Tensor, relevance: Tensor, *, eps: float = EPS, batched: bool = False
) -> Tensor:
    """Relevance of the inputs of y = x W + b; `weight` is `[in, out]`, the bias is left out.

    R_i = (x_i + eps) sum_j W+_ij R_j / z_j with W+ = max(W, eps), z = (x + eps) W+; the inputs
    themselves are not clipped. The whole tensor is one example, unless `batched`: then each row
    of the first axis is.

    >>> z_plus_dense(torch.tensor([[1.0, 3.0]]), torch.ones(2, 1), torch.tensor([[8.0]]))
    tensor([[2.0000, 6.0000]])
    """
    flow = z_plus_flow(x, weight, relevance, eps)
    return z_plus_keep([flow], relevance, batched=batched)[0]


def z_plus_add(
    a: Tensor, b: Tensor, relevance: Tensor, *, eps: float = EPS, batched: bool = False
) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a sum: in proportion, then positive and kept together."""
    a, b = a + eps, b + eps
    share = relevance / (a + b)
    first, second = z_plus_keep([a * share, b * share], relevance, batched=batched)
    return first, second


def z_plus_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    relevance: Tensor,
    *,
    scale: float | None = None,
    weights: Tensor | None = None,
    eps: float = EPS,
    batched: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of queries, keys and values of softmax(q k) v: gradient times input, kept together.

    All are `[..., head, token, dim]`; keys and values may have fewer heads. `weights` are the
    attention weights where they are known (masks and biases included).
    """
    heads = query.shape[-3]
    q, k, v = query + eps, repeated(key, heads) + eps, repeated(value, heads) + eps
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    weights = (scale * q @ k.mT).softmax(dim=-1) if weights is None else weights
    slope = relevance / (weights @ v + eps)
    by_weight = slope @ v.mT
    by_score = weights * (by_weight - (weights * by_weight).sum(dim=-1, keepdim=True))
    flows = [
        q * (by_score @ k) * scale,
        grouped(k * (by_score.mT @ q) * scale, key.shape[-3]),
        grouped(v * (weights.mT @ slope), value.shape[-3]),
    ]
    first, second, third = z_plus_keep(flows, relevance, batched=batched)
    return first, second, third


def z_plus_flow(x: Tensor, weight: Tensor, relevance: Tensor, eps: float = EPS) -> Tensor:
    """What a dense layer sends to its inputs, before signs are dropped and the total is kept."""
    safe, positive = x + eps, weight.clamp_min(eps)
    return safe * ((relevance / (safe @ positive)) @ positive.mT)


def z_plus_keep(flows: list[Tensor], relevance: Tensor, *, batched: bool) -> list[Tensor]:
    """Absolute values, scaled together to the total of the relevance that came in."""
    total = _total(relevance, batched)
    made = [flow.abs() for flow in flows]
    sums = [_total(flow, batched) for flow in made]
    factor = total / torch.stack(sums).sum(dim=0).clamp_min(torch.finfo(total.dtype).tiny)
    return [flow * _beside(factor, flow) for flow in made]


def _total(tensor: Tensor, batched: bool) -> Tensor:
    return tensor.reshape(tensor.shape[0], -1).sum(dim=1) if batched else tensor.sum()


def _beside(factor: Tensor, tensor: Tensor) -> Tensor:
    return factor.reshape(-1, *[1] * (tensor.dim() - 1)) if factor.dim() else factor
