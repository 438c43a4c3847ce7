"""How relevance goes through a network: what every rule must answer, one method a kind of step.

Every tensor has the example as its first axis. A step returns the relevance of its inputs; where
a bias keeps a share, that comes second, in the shape of the output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from headcount.lrp.epsilon import epsilon_product

__all__ = ["Attending", "Rule", "WithBias"]

WithBias = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Attending:
    """One call of softmax(q k) v, `[row, head, token, dim]`; keys and values as the module has."""

    query: Tensor
    key: Tensor
    value: Tensor
    #: `[row, head, query, key]`, masks and biases included.
    weights: Tensor
    output: Tensor
    scale: float


class Rule(ABC):
    """One way to share relevance; activations always pass it on.

    What is not abstract here is what most rules do: constants get nothing, norms pass relevance
    on, both sides of a product get half.
    """

    name: ClassVar[str]
    #: Whether relevance is made positive (or of kept |R|) and scaled to its total at every step.
    settles: ClassVar[bool] = False
    #: What of a start's relevance the rule promises to find again at every cut.
    promise: ClassVar[str]

    @abstractmethod
    def dense(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """Through y = x W + b, `weight` `[in, out]`."""

    @abstractmethod
    def pick(
        self, x: Tensor, row: Tensor, bias: Tensor | None, output: Tensor, relevance: Tensor
    ) -> WithBias:
        """Through one output of a dense layer at each place: y = sum(x * row) + b."""

    @abstractmethod
    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Through a + b."""

    @abstractmethod
    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """Through the sum over some axes, kept as axes of one."""

    @abstractmethod
    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """Through softmax(q k) v, to q, k and v."""

    def shift(self, x: Tensor, constant: Tensor | float, relevance: Tensor) -> WithBias:
        """Through x + constant, which is no neuron."""
        return relevance, None

    def product(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Through a * b."""
        return epsilon_product(relevance)

    def layer_norm(
        self,
        x: Tensor,
        gain: Tensor,
        bias: Tensor | None,
        norm_eps: float,
        output: Tensor,
        relevance: Tensor,
    ) -> WithBias:
        """Through a layer norm over the last axis."""
        return relevance, None

    def rms_norm(self, x: Tensor, gain: Tensor, relevance: Tensor) -> Tensor:
        """Through a root-mean-square norm over the last axis."""
        return relevance

    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """What dense layers sent to one input together, made relevance of this total `[row]`."""
        return flow
