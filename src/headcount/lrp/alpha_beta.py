"""The rules of Voita et al.'s program of 2021: exact Jacobians, positive and negative parts apart.

alpha = beta = 0.5, eps = 1e-5, both parts with a plus sign: a start that is not negative stays so.
Biases are spread evenly over the inputs, and the sum of |R| is kept for each sample (first axis).
`alpha_beta=False` is the program's plain rule z / (sum z + eps).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from headcount.lrp.contraction import contracted
from headcount.lrp.shape import over, per_example

__all__ = [
    "EPS",
    "alpha_beta_add",
    "alpha_beta_dense",
    "alpha_beta_flow",
    "alpha_beta_keep",
    "alpha_beta_layer_norm",
    "alpha_beta_rms_norm",
    "parts",
]

EPS = 1e-5
ALPHA = BETA = 0.5

# So many contributions [token, in, out] are held at once.
_ROOM = 1 << 24


def alpha_beta_dense(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    eps: float = EPS,
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
    a: Tensor, b: Tensor, relevance: Tensor, *, eps: float = EPS, alpha_beta: bool = True
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
    eps: float = EPS,
    alpha_beta: bool = True,
) -> Tensor:
    """Relevance through a layer norm over the last axis, by its full Jacobian.

    As in the program, `norm_eps` counts where the width is differentiated and not beside the
    identity. The plain rule is degenerate here: J x is about 0, so only the biases have a say.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    return _through_norm(x, centred, 1.0, gain, bias, relevance, norm_eps, eps, alpha_beta)


def alpha_beta_rms_norm(
    x: Tensor, gain: Tensor, relevance: Tensor, *, norm_eps: float = 1e-6, eps: float = EPS
) -> Tensor:
    """The same through a root-mean-square norm, which neither centres nor shifts."""
    return _through_norm(x, x, 0.0, gain, None, relevance, norm_eps, eps, True)


def alpha_beta_flow(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    eps: float = EPS,
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


def alpha_beta_keep(flow: Tensor, relevance: Tensor, eps: float = EPS) -> Tensor:
    """The flow scaled so that each sample's sum of |R| is kept."""
    return kept(flow, per_example(relevance.abs()), eps)


def kept(flow: Tensor, total: Tensor, eps: float = EPS) -> Tensor:
    """The flow scaled to a sum of |R| for each sample, `[sample, 1, ...]`."""
    sums = per_example(flow.abs()).clamp_min(torch.finfo(flow.dtype).tiny)
    return flow * (total / sums * total / (total + eps))


def parts(above: Tensor, below: Tensor, eps: float = EPS) -> tuple[Tensor, Tensor]:
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
