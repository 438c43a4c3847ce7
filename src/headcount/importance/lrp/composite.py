"""The four rules: which formula meets which kind of step."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from headcount.errors import UsageError
from headcount.importance.lrp import rule, rules
from headcount.importance.lrp.rule import Attending, Rule, WithBias, over
from headcount.importance.lrp.rules import EPS, z_plus_flow, z_plus_keep


class Default(Rule):
    """Ours: in proportion; norms' widths and attention weights constant; biases keep a share."""

    name = "default"
    promise = "inputs and biases together keep all of it"

    def dense(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `epsilon_dense`."""
        return rule.epsilon_dense(x, weight, bias, relevance, output)

    def pick(
        self, x: Tensor, row: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `epsilon_dense`."""
        share = over(relevance, output)
        return x * row * share[..., None], None if bias is None else share * bias

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """See `epsilon_add`."""
        return rule.epsilon_add(a, b, relevance)

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """In proportion."""
        return x * over(relevance, x.sum(dim=list(axes), keepdim=True))

    def shift(self, x: Tensor, constant: Tensor | float, relevance: Tensor) -> WithBias:
        """The constant is a bias."""
        share = over(relevance, x + constant)
        return x * share, share * constant

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """See `epsilon_attention`."""
        found = rule.epsilon_attention(call.value, call.weights, relevance, call.output)
        return None, None, found

    def layer_norm(
        self,
        x: Tensor,
        gain: Tensor,
        bias: Tensor | None,
        norm_eps: float,
        output: Tensor,
        relevance: Tensor,
    ) -> WithBias:
        """See `epsilon_layer_norm`."""
        return rule.epsilon_layer_norm(x, gain, bias, relevance, norm_eps=norm_eps, output=output)


class ZPlus(Rule):
    """The program of June 2019, one example at a time; dense layers on one input settle as one."""

    name = "z+"
    settles = True
    promise = "every cut keeps the total"

    def dense(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `z_plus_dense`; not settled yet."""
        return z_plus_flow(x, weight, relevance), None

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """Absolute values of the given total."""
        return z_plus_keep([flow], total, batched=True)[0]

    def pick(
        self, x: Tensor, row: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `z_plus_dense`."""
        flow = z_plus_flow(x[..., None, :], row[..., :, None], relevance[..., None, None])
        return z_plus_keep([flow.squeeze(-2)], relevance, batched=True)[0], None

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """See `z_plus_add`."""
        return rules.z_plus_add(a, b, relevance, batched=True)

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """An addition of many."""
        safe = x + EPS
        flow = safe * (relevance / safe.sum(dim=list(axes), keepdim=True))
        return z_plus_keep([flow], relevance, batched=True)[0]

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """See `z_plus_attention`."""
        return rules.z_plus_attention(
            call.query,
            call.key,
            call.value,
            relevance,
            scale=call.scale,
            weights=call.weights,
            batched=True,
        )


class Ding(ZPlus):
    """The shares of the paper's text (Voita et al. 2019, appendix A), kept as their program does.

    The text alone grows without bound where a sum is near zero, so that no cut of a real model
    keeps its sum in any precision; absolute values of a kept total are what the authors ran.
    """

    name = "ding"

    def dense(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `ding_dense`; not settled yet."""
        return rules.ding_dense(x, weight, relevance), None

    def pick(
        self, x: Tensor, row: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `ding_dense`."""
        parts = x * row
        flow = parts * over(relevance, parts.sum(dim=-1))[..., None]
        return z_plus_keep([flow], relevance, batched=True)[0], None

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """See `ding_add`."""
        return _both(rules.ding_add(a, b, relevance), relevance)

    def product(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """See `ding_product`."""
        return _both(rules.ding_product(a, b, relevance), relevance)

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """In proportion."""
        flow = x * over(relevance, x.sum(dim=list(axes), keepdim=True))
        return z_plus_keep([flow], relevance, batched=True)[0]

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """See `ding_attention`."""
        flows = rules.ding_attention(call.query, call.key, call.value, call.weights, relevance)
        return z_plus_keep(list(flows), relevance, batched=True)


class AlphaBeta(Rule):
    """The program of 2021; dense layers on one input settle as one."""

    name = "alpha-beta"
    settles = True
    promise = "every cut keeps the total of |R|"

    def dense(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `alpha_beta_dense`; not settled yet."""
        return rules.alpha_beta_flow(x, weight, bias, relevance), None

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """Scaled to the given total of |R|."""
        return rules.scaled_to_relevance(flow, total.reshape(-1, *[1] * (flow.dim() - 1)))

    def pick(
        self, x: Tensor, row: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """See `alpha_beta_dense`."""
        z = x * row if bias is None else x * row + bias[..., None] / x.shape[-1]
        flow = _by_parts(z, [-1], relevance[..., None])
        return rules.alpha_beta_keep(flow, relevance[..., None]), None

    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """See `alpha_beta_add`."""
        return rules.alpha_beta_add(a, b, relevance)

    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """An addition of many."""
        return rules.alpha_beta_keep(_by_parts(x, axes, relevance), relevance)

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """See `alpha_beta_attention`."""
        return rules.alpha_beta_attention(
            call.query, call.key, call.value, relevance, scale=call.scale, weights=call.weights
        )

    def layer_norm(
        self,
        x: Tensor,
        gain: Tensor,
        bias: Tensor | None,
        norm_eps: float,
        output: Tensor,
        relevance: Tensor,
    ) -> WithBias:
        """See `alpha_beta_layer_norm`."""
        return rules.alpha_beta_layer_norm(x, gain, bias, relevance, norm_eps=norm_eps), None

    def rms_norm(self, x: Tensor, gain: Tensor, relevance: Tensor) -> Tensor:
        """See `alpha_beta_rms_norm`."""
        return rules.alpha_beta_rms_norm(x, gain, relevance)


def _both(flows: tuple[Tensor, Tensor], relevance: Tensor) -> tuple[Tensor, Tensor]:
    first, second = z_plus_keep(list(flows), relevance, batched=True)
    return first, second


def _by_parts(z: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
    """Relevance shared among contributions by sign."""
    above, below = z.clamp_min(0), z.clamp_max(0)
    up, down = rules.parts(
        above.sum(dim=list(axes), keepdim=True), below.sum(dim=list(axes), keepdim=True)
    )
    return (above * up + below * down) * relevance


RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Default, Ding, ZPlus, AlphaBeta)}


def rule_named(name: str) -> Rule:
    """The rule of a name, or one sentence that lists them.

    >>> rule_named("z+").settles
    True
    """
    if name not in RULES:
        raise UsageError(f"There is no relevance rule '{name}'; choose {', '.join(RULES)}.")
    return RULES[name]()
