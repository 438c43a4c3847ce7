"""The rules to compare: the four, and two choices that the default did not make."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from headcount.rooms.relevance.rule import (
    Attending,
    Norm,
    Rule,
    WithBias,
    grouped,
    over,
    repeat_heads,
)
from headcount.rooms.relevance.rules import RULES, Default


class PassingNorms(Default):
    """Layer norms pass relevance on as it is (Achtibat et al. 2024, section 3.3.3)."""

    name = "default, norms pass on"

    def layer_norm(self, norm: Norm, relevance: Tensor) -> WithBias:
        return relevance, None


class SharedAttention(Default):
    """Half of a weighted sum's relevance goes to the weights, and through the softmax to q and k.

    Achtibat et al. 2024, sections 3.3.1 and 3.3.2; the softmax does not keep the sum.
    """

    name = "default, attention shared"

    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        heads = call.query.shape[-3]
        k, v = repeat_heads(call.key, heads), repeat_heads(call.value, heads)
        share = over(relevance, call.output) / 2
        at_weights = call.weights * (share @ v.mT)
        # Through the softmax, then half each to q and k: score * slope = q k * slope.
        slope = at_weights - call.weights * at_weights.sum(dim=-1, keepdim=True)
        half = call.scale * slope / 2
        return (
            call.query * (half @ k),
            grouped(k * (half.mT @ call.query), call.key.shape[-3]),
            grouped(v * (call.weights.mT @ share), call.value.shape[-3]),
        )


def rules() -> list[Rule]:
    return [*(rule() for rule in RULES.values()), PassingNorms(), SharedAttention()]
