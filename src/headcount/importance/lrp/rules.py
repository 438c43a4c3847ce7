"""The rules as plain functions of tensors: relevance out of a step in, relevance of its inputs out.

=============== ===================================== ==========================================
rule            source                                functions
=============== ===================================== ==========================================
``default``     ours, docs/decisions                  `epsilon_dense`, `_add`, `_product`,
                                                      `_layer_norm`, `_attention`
``ding``        Voita et al. 2019, appendix A         `ding_dense`, `_add`, `_product`,
                                                      `_attention`
``z+``          their program, June 2019              `z_plus_dense`, `_add`, `_attention`
``alpha-beta``  their program, 2021                   `alpha_beta_dense`, `_add`, `_layer_norm`,
                                                      `_rms_norm`, `_attention`
=============== ===================================== ==========================================

Weights are `[in, out]`, as in y = x W. Which rule meets which module is in `composite`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from headcount.importance.lrp.rule import (
    contracted,
    grouped,
    over,
    per_example,
    repeat_heads,
)

# --- The rules of the paper's text --------------------------------------------------------------
# Ding et al. 2017, as Voita et al. 2019, appendix A, give them: w(u -> v) = W_uv u / sum W_u'v u'
# for
# sums, w(u -> v) = u / sum u' for products; activations are passed over. Denominators may be near
# zero and of any sign, so single relevances can be large; their sum is kept.


def ding_dense(x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """Relevance of the inputs of y = x W + b; `weight` is `[in, out]`, the bias is no neuron.

    >>> import torch
    >>> ding_dense(torch.tensor([1.0, 3.0]), torch.tensor([[1.0], [-1.0]]), torch.tensor([2.0]))
    tensor([-1.,  3.])
    """
    return x * (over(relevance, x @ weight) @ weight.mT)


def ding_add(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a sum, in proportion."""
    share = over(relevance, a + b)
    return a * share, b * share


def ding_product(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a product: also u / sum u', as the paper has it."""
    return ding_add(a, b, relevance)


def ding_attention(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, relevance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of queries, keys and values of softmax(q k) v, `[..., head, token, dim]`.

    A sum of products twice, weights times values and queries times keys; the softmax is an
    activation and passes relevance on.
    """
    heads = query.shape[-3]
    k, v = repeat_heads(key, heads), repeat_heads(value, heads)
    to_weights, to_values = _products(weights[..., None], v[..., None, :, :], relevance, dim=-2)
    # Relevance of a weight is that of its score, [..., query, key], a sum over dimensions.
    scores = to_weights.sum(dim=-1)
    to_queries, to_keys = _products(query[..., :, None, :], k[..., None, :, :], scores, dim=-1)
    return (
        to_queries.sum(dim=-2),
        grouped(to_keys.sum(dim=-3), key.shape[-3]),
        grouped(to_values.sum(dim=-3), value.shape[-3]),
    )


def _products(a: Tensor, b: Tensor, relevance: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Relevance of both factors of a sum of products over one axis."""
    terms = a * b
    shares = terms * over(relevance, terms.sum(dim=dim)).unsqueeze(dim)
    return ding_product(a, b, shares)


# --- The rules of Voita et al.'s program of June 2019 -------------------------------------------
# alpha = 1, beta = 0, eps = 1e-7. Every relevance is made positive and scaled so that its total is
# that of the relevance that came in. Signs are lost at every step; the total never is.

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
    q, k, v = query + eps, repeat_heads(key, heads) + eps, repeat_heads(value, heads) + eps
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


# --- The rules of Voita et al.'s program of 2021 ------------------------------------------------
# alpha = beta = 0.5, eps = 1e-5, both parts with a plus sign: a start that is not negative stays
# so.
# Biases are spread evenly over the inputs, and the sum of |R| is kept for each sample (first axis).
# `alpha_beta=False` is the program's plain rule z / (sum z + eps).

ALPHA_BETA_EPS = 1e-5
ALPHA = BETA = 0.5

# So many contributions [token, in, out] are held at once.
_ROOM = 1 << 24


def alpha_beta_dense(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    eps: float = ALPHA_BETA_EPS,
    alpha_beta: bool = True,
) -> Tensor:
    """Relevance of the inputs of y = x W + b; `weight` is `[in, out]`, the first axis the sample.

    z_ij = x_i W_ij + b_j / n; R_i = sum_j R_j (0.5 z+_ij / sum z+_j + 0.5 z-_ij / sum z-_j).

    >>> alpha_beta_dense(torch.tensor([[1.0, 3.0]]), torch.ones(2, 1), None, torch.tensor([[8.0]]))
    tensor([[2.0000, 6.0000]])
    """
    flow = alpha_beta_flow(x, weight, bias, relevance, eps=eps, alpha_beta=alpha_beta)
    return alpha_beta_keep(flow, relevance, eps)


def alpha_beta_add(
    a: Tensor, b: Tensor, relevance: Tensor, *, eps: float = ALPHA_BETA_EPS, alpha_beta: bool = True
) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a sum; the sum of |R| is kept over both together."""
    if alpha_beta:
        up, down = parts(a.clamp_min(0) + b.clamp_min(0), a.clamp_max(0) + b.clamp_max(0), eps)
        flows = [(c.clamp_min(0) * up + c.clamp_max(0) * down) * relevance for c in (a, b)]
    else:
        share = over(relevance, a + b, eps)
        flows = [a * share, b * share]
    sums = per_example(flows[0].abs()) + per_example(flows[1].abs())
    factor = per_example(relevance.abs()) / (sums + eps)
    return flows[0] * factor, flows[1] * factor


def alpha_beta_layer_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    norm_eps: float = 1e-6,
    eps: float = ALPHA_BETA_EPS,
    alpha_beta: bool = True,
) -> Tensor:
    """Relevance through a layer norm over the last axis, by its full Jacobian.

    As in the program, `norm_eps` counts where the width is differentiated and not beside the
    identity. The plain rule is degenerate here: J x is about 0, so only the biases have a say.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    return _through_norm(x, centred, 1.0, gain, bias, relevance, norm_eps, eps, alpha_beta)


def alpha_beta_rms_norm(
    x: Tensor,
    gain: Tensor,
    relevance: Tensor,
    *,
    norm_eps: float = 1e-6,
    eps: float = ALPHA_BETA_EPS,
) -> Tensor:
    """The same through a root-mean-square norm, which neither centres nor shifts."""
    return _through_norm(x, x, 0.0, gain, None, relevance, norm_eps, eps, True)


def alpha_beta_flow(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    eps: float = ALPHA_BETA_EPS,
    alpha_beta: bool = True,
) -> Tensor:
    """What a dense layer sends to its inputs, before the sum of |R| is kept."""
    if bias is None and alpha_beta:
        return _without_bias(x, weight, relevance, eps)
    spread = 0.0 if bias is None else bias / weight.shape[0]
    rows, told = x.reshape(-1, x.shape[-1]), relevance.reshape(-1, relevance.shape[-1])
    flows = [
        _shared(rows[some, :, None] * weight + spread, told[some], eps, alpha_beta)
        for some in _chunks(len(rows), weight.numel())
    ]
    return torch.cat(flows).reshape(x.shape)


def alpha_beta_keep(flow: Tensor, relevance: Tensor, eps: float = ALPHA_BETA_EPS) -> Tensor:
    """The flow scaled so that each sample's sum of |R| is kept."""
    return scaled_to_relevance(flow, per_example(relevance.abs()), eps)


def scaled_to_relevance(flow: Tensor, total: Tensor, eps: float = ALPHA_BETA_EPS) -> Tensor:
    """The flow scaled to a sum of |R| for each sample, `[sample, 1, ...]`."""
    sums = per_example(flow.abs()).clamp_min(torch.finfo(flow.dtype).tiny)
    return flow * (total / sums * total / (total + eps))


def parts(above: Tensor, below: Tensor, eps: float = ALPHA_BETA_EPS) -> tuple[Tensor, Tensor]:
    """Half over the sum of positive parts, half over the sum of negative ones."""
    return ALPHA / (above + eps), BETA / (below - eps)


def _through_norm(
    x: Tensor,
    centred: Tensor,
    centring: float,
    gain: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    norm_eps: float,
    eps: float,
    alpha_beta: bool,
) -> Tensor:
    """J_ij = gain_j ((d_ij - centring / n) / width - centred_i centred_j / (n width^3))."""
    n = x.shape[-1]
    spread = 0.0 if bias is None else bias / n
    flat = [part.reshape(-1, n) for part in (x, centred, relevance)]
    straight = torch.eye(n, dtype=x.dtype, device=x.device) - centring / n
    flows = []
    for some in _chunks(len(flat[0]), n * n):
        inputs, deviation, told = (part[some, :, None] for part in flat)
        square = deviation.square().mean(dim=1, keepdim=True)
        bend = deviation * deviation.mT / (n * (square + norm_eps) ** 1.5)
        jacobian = gain * (straight * square.clamp_min(norm_eps**2).rsqrt() - bend)
        flows.append(_shared(jacobian * inputs + spread, told[..., 0], eps, alpha_beta))
    return alpha_beta_keep(torch.cat(flows).reshape(x.shape), relevance, eps)


def _shared(z: Tensor, relevance: Tensor, eps: float, alpha_beta: bool) -> Tensor:
    """Relevance `[row, out]` shared among inputs by their contributions `[row, in, out]`."""
    if not alpha_beta:
        return contracted(z, over(relevance, z.sum(dim=1), eps))
    above, below = z.clamp_min(0), z.clamp_max_(0)  # z is ours, and large
    up, down = parts(above.sum(dim=1), below.sum(dim=1), eps)
    return contracted(above, relevance * up) + contracted(below, relevance * down)


def _without_bias(x: Tensor, weight: Tensor, relevance: Tensor, eps: float) -> Tensor:
    """The same by matrix products: the positive part of x W is x+ W+ + x- W-."""
    xp, xm, wp, wm = x.clamp_min(0), x.clamp_max(0), weight.clamp_min(0), weight.clamp_max(0)
    up, down = parts(xp @ wp + xm @ wm, xp @ wm + xm @ wp, eps)
    up, down = relevance * up, relevance * down
    return xp * (up @ wp.mT + down @ wm.mT) + xm * (up @ wm.mT + down @ wp.mT)


def _chunks(rows: int, each: int) -> Iterator[slice]:
    step = max(1, _ROOM // each)
    return (slice(start, start + step) for start in range(0, rows, step))


# --- The 2021 rule through softmax(q k) v -------------------------------------------------------
# The Jacobian is never built: its entries for keys are products of two factors, and the positive
# part of a product is the products of parts of one sign.


def alpha_beta_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    relevance: Tensor,
    *,
    scale: float | None = None,
    weights: Tensor | None = None,
    eps: float = ALPHA_BETA_EPS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of queries, keys and values; the sum of |R| is kept for each sample.

    All are `[sample, head, token, dim]`; keys and values may have fewer heads. `weights` are the
    attention weights where they are known (masks and biases included).
    """
    heads = query.shape[-3]
    k, v = repeat_heads(key, heads), repeat_heads(value, heads)
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
