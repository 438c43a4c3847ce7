"""The three rules of relevance: what each kind of step of a network does with it.

============== ================================================================================
``ding``       the paper's text: Ding et al. 2017, as Voita et al. 2019, appendix A, give it
``z+``         Voita et al.'s program of June 2019: alpha = 1, beta = 0, eps = 1e-7
``alpha-beta`` their program of 2021: alpha = beta = 0.5, eps = 1e-5
============== ================================================================================

Weights are `[in, out]`, as in y = x W. The example is the first axis of every tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.rooms.relevance.rule import (
    Attending,
    Dense,
    Norm,
    Rule,
    contracted,
    grouped,
    over,
    per_example,
    repeat_heads,
)

# --- Voita et al.'s program of June 2019 --------------------------------------------------------
# Every relevance is made positive and scaled so that its total is that of the relevance that came
# in. Signs are lost at every step; the total never is.

EPS = 1e-7


class ZPlus(Rule):
    """Absolute values of a kept total; dense layers on one input settle as one."""

    name = "z+"
    promise = "every cut keeps the total"

    def dense(self, layer: Dense, relevance: Tensor) -> Tensor:
        """R_i = (x_i + eps) sum_j W+_ij R_j / z_j with W+ = max(W, eps), z = (x + eps) W+.

        The inputs themselves are not clipped, and the bias is left out; not settled yet.
        """
        return _z_plus(layer.x, layer.weight, relevance)

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """Absolute values of the given total."""
        return _positive([flow], total)[0]

    def pick(self, layer: Dense, relevance: Tensor) -> Tensor:
        """The same for one output, settled."""
        row = layer.weight[..., :, None]
        flow = _z_plus(layer.x[..., None, :], row, relevance[..., None, None])
        return _positive([flow.squeeze(-2)], relevance)[0]

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """In proportion, then positive and kept together."""
        a, b = a + EPS, b + EPS
        share = _quotient(relevance, a + b)
        first, second = _positive([a * share, b * share], relevance)
        return first, second

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """An addition of many."""
        safe = x + EPS
        flow = safe * _quotient(relevance, safe.sum(dim=list(axes), keepdim=True))
        return _positive([flow], relevance)[0]

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """Gradient times input, kept together."""
        heads, weights, scale = call.query.shape[-3], call.weights, call.scale
        q, k = call.query + EPS, repeat_heads(call.key, heads) + EPS
        v = repeat_heads(call.value, heads) + EPS
        slope = _quotient(relevance, weights @ v + EPS)
        by_weight = slope @ v.mT
        by_score = weights * (by_weight - (weights * by_weight).sum(dim=-1, keepdim=True))
        flows = [
            q * (by_score @ k) * scale,
            grouped(k * (by_score.mT @ q) * scale, call.key.shape[-3]),
            grouped(v * (weights.mT @ slope), call.value.shape[-3]),
        ]
        return _positive(flows, relevance)


def _z_plus(x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    safe, positive = x + EPS, weight.clamp_min(EPS)
    return safe * (_quotient(relevance, safe @ positive) @ positive.mT)


def _quotient(relevance: Tensor, total: Tensor) -> Tensor:
    """Relevance over a sum that may be zero, as on padding: where none came in, none goes on."""
    return torch.where(relevance == 0, 0, over(relevance, total, torch.finfo(total.dtype).tiny))


def _positive(flows: Sequence[Tensor], relevance: Tensor) -> list[Tensor]:
    """Absolute values, scaled together to each example's total of the relevance that came in."""
    total = relevance.flatten(1).sum(dim=1) if relevance.dim() > 1 else relevance
    made = [flow.abs() for flow in flows]
    sums = torch.stack([flow.flatten(1).sum(dim=1) for flow in made]).sum(dim=0)
    factor = total / sums.clamp_min(torch.finfo(total.dtype).tiny)
    return [flow * factor.reshape(-1, *[1] * (flow.dim() - 1)) for flow in made]


# --- The paper's text ---------------------------------------------------------------------------
# w(u -> v) = W_uv u / sum W_u'v u' for sums, w(u -> v) = u / sum u' for products; activations are
# passed over. Denominators may be near zero and of any sign, so single relevances can be large.


class Ding(ZPlus):
    """The shares of the paper's text (Voita et al. 2019, appendix A), kept as their program does.

    The text alone grows without bound where a sum is near zero, so that no cut of a real model
    keeps its sum in any precision; absolute values of a kept total are what the authors ran.
    """

    name = "ding"
    lacks = ("a root-mean-square norm",)

    def dense(self, layer: Dense, relevance: Tensor) -> Tensor:
        """See `ding_dense`; not settled yet."""
        return ding_dense(layer.x, layer.weight, relevance)

    def pick(self, layer: Dense, relevance: Tensor) -> Tensor:
        """The same for one output, settled."""
        parts = layer.x * layer.weight
        flow = parts * over(relevance, parts.sum(dim=-1))[..., None]
        return _positive([flow], relevance)[0]

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """In proportion."""
        first, second = _positive(_in_proportion(a, b, relevance), relevance)
        return first, second

    def product(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Also u / sum u', as the paper has it."""
        return self.add(a, b, relevance)

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """In proportion."""
        flow = x * over(relevance, x.sum(dim=list(axes), keepdim=True))
        return _positive([flow], relevance)[0]

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """See `ding_attention`."""
        return _positive(ding_attention(call, relevance), relevance)


def _in_proportion(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    share = over(relevance, a + b)
    return a * share, b * share


def ding_dense(x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """Relevance of the inputs of y = x W + b; the bias is no neuron.

    >>> ding_dense(torch.tensor([1.0, 3.0]), torch.tensor([[1.0], [-1.0]]), torch.tensor([2.0]))
    tensor([-1.,  3.])
    """
    return x * (over(relevance, x @ weight) @ weight.mT)


def ding_attention(call: Attending, relevance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A sum of products twice, weights times values and queries times keys.

    The softmax is an activation and passes relevance on.
    """

    def products(a: Tensor, b: Tensor, relevance: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Relevance of both factors of a sum of products over one axis."""
        terms = a * b
        return _in_proportion(a, b, terms * over(relevance, terms.sum(dim=dim)).unsqueeze(dim))

    heads = call.query.shape[-3]
    k, v = (repeat_heads(one, heads)[..., None, :, :] for one in (call.key, call.value))
    to_weights, to_values = products(call.weights[..., None], v, relevance, dim=-2)
    # Relevance of a weight is that of its score, [..., query, key], a sum over dimensions.
    scores = to_weights.sum(dim=-1)
    to_queries, to_keys = products(call.query[..., :, None, :], k, scores, dim=-1)
    return (
        to_queries.sum(dim=-2),
        grouped(to_keys.sum(dim=-3), call.key.shape[-3]),
        grouped(to_values.sum(dim=-3), call.value.shape[-3]),
    )


# --- Voita et al.'s program of 2021 -------------------------------------------------------------
# Both parts have a plus sign: a start that is not negative stays so. Biases are spread evenly over
# the inputs, and the sum of |R| is kept for each example.

ALPHA_BETA_EPS = 1e-5

# So many contributions [token, in, out] are held at once.
_ROOM = 1 << 24


class AlphaBeta(Rule):
    """Half by positive contributions, half by negative; dense layers on one input settle as one."""

    name = "alpha-beta"
    promise = "every cut keeps the total of |R|"

    def dense(self, layer: Dense, relevance: Tensor) -> Tensor:
        """R_i = sum_j R_j (0.5 z+_ij / sum z+_j + 0.5 z-_ij / sum z-_j), z_ij = x_i W_ij + b_j / n.

        Not settled yet.
        """
        x, weight, bias = layer.x, layer.weight, layer.bias
        if bias is None:
            # The same by matrix products: the positive part of x W is x+ W+ + x- W-.
            xp, xm, wp, wm = (f(0) for one in (x, weight) for f in (one.clamp_min, one.clamp_max))
            up, down = (relevance * part for part in _halves(xp @ wp + xm @ wm, xp @ wm + xm @ wp))
            return xp * (up @ wp.mT + down @ wm.mT) + xm * (up @ wm.mT + down @ wp.mT)
        rows, told = x.reshape(-1, x.shape[-1]), relevance.reshape(-1, relevance.shape[-1])
        flows = [
            _shared(rows[some, :, None] * weight + bias / weight.shape[0], told[some])
            for some in _chunks(len(rows), weight.numel())
        ]
        return torch.cat(flows).reshape(x.shape)

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """Scaled to the given total of |R|."""
        return _scaled_to(flow, total.reshape(-1, *[1] * (flow.dim() - 1)))

    def pick(self, layer: Dense, relevance: Tensor) -> Tensor:
        """The same for one output, settled."""
        z = layer.x * layer.weight
        if layer.bias is not None:
            z = z + layer.bias[..., None] / z.shape[-1]
        flow = _by_parts(z, [-1], relevance[..., None])
        return _scaled_to(flow, per_example(relevance[..., None].abs()))

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of |R| is kept over both together."""
        up, down = _halves(a.clamp_min(0) + b.clamp_min(0), a.clamp_max(0) + b.clamp_max(0))
        flows = [(c.clamp_min(0) * up + c.clamp_max(0) * down) * relevance for c in (a, b)]
        first, second = _kept_together(flows, relevance)
        return first, second

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """An addition of many."""
        return _scaled_to(_by_parts(x, axes, relevance), per_example(relevance.abs()))

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """Through the Jacobian, one example at a time: a factor is [head, query, key, dim]."""
        heads = call.query.shape[-3]
        k, v = repeat_heads(call.key, heads), repeat_heads(call.value, heads)
        rows = zip(call.query, k, v, relevance, call.weights, strict=True)
        found = [_attention(*row, call.scale) for row in rows]
        flows = [torch.stack(flow) for flow in zip(*found, strict=True)]
        flows[1] = grouped(flows[1], call.key.shape[-3])
        flows[2] = grouped(flows[2], call.value.shape[-3])
        return _kept_together(flows, relevance)

    def layer_norm(self, norm: Norm, relevance: Tensor) -> Tensor:
        """By the full Jacobian.

        As in the program, `eps` counts where the width is differentiated and not beside the
        identity.
        """
        centred = norm.x - norm.x.mean(dim=-1, keepdim=True)
        spread = 0.0 if norm.bias is None else norm.bias / norm.x.shape[-1]
        return _through_norm(norm, centred, 1.0, spread, relevance)

    def rms_norm(self, norm: Norm, relevance: Tensor) -> Tensor:
        """The same for a norm that neither centres nor shifts."""
        return _through_norm(norm, norm.x, 0.0, 0.0, relevance)


def _halves(above: Tensor, below: Tensor) -> tuple[Tensor, Tensor]:
    """Half over the sum of positive parts, half over the sum of negative ones."""
    return 0.5 / (above + ALPHA_BETA_EPS), 0.5 / (below - ALPHA_BETA_EPS)


def _by_parts(z: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
    """Relevance shared among contributions by sign."""
    above, below = z.clamp_min(0), z.clamp_max(0)
    up, down = _halves(*(part.sum(dim=list(axes), keepdim=True) for part in (above, below)))
    return (above * up + below * down) * relevance


def _shared(z: Tensor, relevance: Tensor) -> Tensor:
    """Relevance `[row, out]` shared among inputs by their contributions `[row, in, out]`."""
    above, below = z.clamp_min(0), z.clamp_max_(0)  # z is ours, and large
    up, down = _halves(above.sum(dim=1), below.sum(dim=1))
    return contracted(above, relevance * up) + contracted(below, relevance * down)


def _scaled_to(flow: Tensor, total: Tensor) -> Tensor:
    """The flow scaled to a sum of |R| for each example, `[example, 1, ...]`."""
    sums = per_example(flow.abs()).clamp_min(torch.finfo(flow.dtype).tiny)
    return flow * (total / sums * total / (total + ALPHA_BETA_EPS))


def _kept_together(flows: Sequence[Tensor], relevance: Tensor) -> list[Tensor]:
    sums = torch.stack([per_example(flow.abs()) for flow in flows]).sum(dim=0)
    factor = per_example(relevance.abs()) / (sums + ALPHA_BETA_EPS)
    return [flow * factor for flow in flows]


def _chunks(rows: int, each: int) -> Iterator[slice]:
    step = max(1, _ROOM // each)
    return (slice(start, start + step) for start in range(0, rows, step))


def _through_norm(
    norm: Norm, centred: Tensor, centring: float, spread: Tensor | float, relevance: Tensor
) -> Tensor:
    """J_ij = gain_j ((d_ij - centring / n) / width - centred_i centred_j / (n width^3))."""
    x, n = norm.x, norm.x.shape[-1]
    flat = [part.reshape(-1, n) for part in (x, centred, relevance)]
    straight = torch.eye(n, dtype=x.dtype, device=x.device) - centring / n
    flows = []
    for some in _chunks(len(flat[0]), n * n):
        inputs, deviation, told = (part[some, :, None] for part in flat)
        square = deviation.square().mean(dim=1, keepdim=True)
        bend = deviation * deviation.mT / (n * (square + norm.eps) ** 1.5)
        jacobian = norm.gain * (straight * square.clamp_min(norm.eps**2).rsqrt() - bend)
        flows.append(_shared(jacobian * inputs + spread, told[..., 0]))
    return _scaled_to(torch.cat(flows).reshape(x.shape), per_example(relevance.abs()))


def _attention(
    q: Tensor, k: Tensor, v: Tensor, relevance: Tensor, weights: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Flows of one example, `[head, token, dim]` each.

    The Jacobian is never built: its entries for keys are products of two factors, and the positive
    part of a product is the products of parts of one sign.
    """
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
    up, down = (relevance * part for part in _halves(above, below))
    to_query = (
        by_query.clamp_min(0) * up[..., None] + by_query.clamp_max(0) * down[..., None]
    ).sum(dim=-2)
    wide_up, wide_down = up[..., :, None, :], down[..., :, None, :]
    to_value = (carried.clamp_min(0) * wide_up + carried.clamp_max(0) * wide_down).sum(dim=-3)
    same = (mp * wide_up + mm * wide_down).sum(dim=-1)[..., None]
    other = (mm * wide_up + mp * wide_down).sum(dim=-1)[..., None]
    return to_query, (tp * same + tm * other).sum(dim=-3), to_value


# --- By name ------------------------------------------------------------------------------------

RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Ding, ZPlus, AlphaBeta)}


def rule_named(name: str) -> Rule:
    """The rule of a name, "extended" or as its authors have it; or one sentence that lists them.

    >>> rule_named("z+").extended, rule_named("z+ extended").extended
    (False, True)
    """
    first, _, more = name.partition(" ")
    if first not in RULES or more not in ("", "extended"):
        raise UsageError(
            f"There is no relevance rule '{name}'; choose {', '.join(RULES)}, or one of them with "
            "' extended' for blocks that the authors have no rule for."
        )
    return RULES[first](more == "extended")
