"""The 2021 rule through softmax(q k) v, by its exact Jacobian with respect to q, k and v.

The Jacobian is never built: its entries for keys are products of two factors, and the positive
part of a product is the products of parts of one sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.lrp.alpha_beta import EPS, parts
from headcount.lrp.shape import grouped, per_example, repeated

__all__ = ["alpha_beta_attention"]


def alpha_beta_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    relevance: Tensor,
    *,
    scale: float | None = None,
    weights: Tensor | None = None,
    eps: float = EPS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of queries, keys and values; the sum of |R| is kept for each sample.

    All are `[sample, head, token, dim]`; keys and values may have fewer heads. `weights` are the
    attention weights where they are known (masks and biases included).
    """
    heads = query.shape[-3]
    k, v = repeated(key, heads), repeated(value, heads)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    weights = (scale * query @ k.mT).softmax(dim=-1) if weights is None else weights
    # One row of the first axis at a time: a factor is [head, query, key, dim].
    rows = zip(query, k, v, relevance, weights, strict=True)
    found = [_one(q, kk, vv, told, w, scale, eps) for q, kk, vv, told, w in rows]
    flows = [torch.stack(flow) for flow in zip(*found, strict=True)]
    flows[1], flows[2] = grouped(flows[1], key.shape[-3]), grouped(flows[2], value.shape[-3])
    factor = _factor(flows, relevance, eps)
    return flows[0] * factor, flows[1] * factor, flows[2] * factor


def _one(
    q: Tensor, k: Tensor, v: Tensor, relevance: Tensor, weights: Tensor, scale: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Flows of one sample, `[head, token, dim]` each."""
    carried = weights[..., None] * v[..., None, :, :]  # [head, query, key, dim]
    output = carried.sum(dim=-2)
    moved = weights[..., None] * (v[..., None, :, :] - output[..., :, None, :])  # d out / d score
    met = scale * q[..., :, None, :] * k[..., None, :, :]  # score by dimension
    by_query = torch.einsum("...ijd,...ije->...ide", moved, met)
    mp, mm, tp, tm = moved.clamp_min(0), moved.clamp_max(0), met.clamp_min(0), met.clamp_max(0)
    sp, sm = tp.sum(dim=-1)[..., None], tm.sum(dim=-1)[..., None]
    above = (
        carried.clamp_min(0).sum(-2) + by_query.clamp_min(0).sum(-1) + (mp * sp + mm * sm).sum(-2)
    )
    below = (
        carried.clamp_max(0).sum(-2) + by_query.clamp_max(0).sum(-1) + (mp * sm + mm * sp).sum(-2)
    )
    up, down = (relevance * part for part in parts(above, below, eps))
    to_query = (
        by_query.clamp_min(0) * up[..., None] + by_query.clamp_max(0) * down[..., None]
    ).sum(dim=-2)
    wide_up, wide_down = up[..., :, None, :], down[..., :, None, :]
    to_value = (carried.clamp_min(0) * wide_up + carried.clamp_max(0) * wide_down).sum(dim=-3)
    same = (mp * wide_up + mm * wide_down).sum(dim=-1)[..., None]
    other = (mm * wide_up + mp * wide_down).sum(dim=-1)[..., None]
    to_key = (tp * same + tm * other).sum(dim=-3)
    return to_query, to_key, to_value


def _factor(flows: list[Tensor], relevance: Tensor, eps: float) -> Tensor:
    sums = torch.stack([per_example(flow.abs()) for flow in flows]).sum(dim=0)
    return per_example(relevance.abs()) / (sums + eps)
