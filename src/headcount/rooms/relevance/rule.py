"""How relevance goes through a network: what every rule must answer, one method a kind of step.

Every tensor has the example as its first axis. A step returns the relevance of its inputs; biases
keep nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from headcount.errors import UnsupportedModel
from headcount.models import Site

# --- Small things that every rule needs ---------------------------------------------------------

#: So small that no activation of a trained model is near it.
TINY = 1e-9


def over(relevance: Tensor, total: Tensor, eps: float = TINY) -> Tensor:
    """Relevance divided by a sum that may be zero: `eps` of the sum's own sign is added.

    >>> over(torch.tensor([1.0, 1.0]), torch.tensor([0.5, -0.25]))
    tensor([ 2., -4.])
    """
    return relevance / (total + torch.copysign(total.new_tensor(eps), total))


def per_example(tensor: Tensor) -> Tensor:
    """Summed over all axes but the first, which is kept so that it still broadcasts.

    >>> per_example(torch.ones(2, 3, 4)).shape
    torch.Size([2, 1, 1])
    """
    return tensor.sum(dim=tuple(range(1, tensor.dim())), keepdim=True)


def summed_to(tensor: Tensor, shape: torch.Size) -> Tensor:
    """Summed over the axes along which something of this shape was repeated.

    >>> summed_to(torch.ones(2, 3), torch.Size([1])).tolist()
    [6.0]
    """
    extra = tensor.dim() - len(shape)
    stretched = [
        extra + axis for axis, size in enumerate(shape) if size == 1 != tensor.shape[extra + axis]
    ]
    axes = [*range(extra), *stretched]
    return tensor.sum(dim=axes, keepdim=True).reshape(shape) if axes else tensor


def repeat_heads(tensor: Tensor, heads: int) -> Tensor:
    """Keys or values `[..., key head, key, dim]` once for every query head that reads them."""
    return tensor.repeat_interleave(heads // tensor.shape[-3], dim=-3)


def grouped(tensor: Tensor, heads: int) -> Tensor:
    """The reverse for relevance: summed over the query heads that read the same key head."""
    apart = tensor.reshape(*tensor.shape[:-3], heads, -1, *tensor.shape[-2:])
    return apart.sum(dim=-3)


# --- How relevance goes through a network -------------------------------------------------------


@dataclass(frozen=True)
class Dense:
    """One call of y = x W + b, `weight` `[in, out]`; of a single output `weight` is `[..., in]`."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    output: Tensor


@dataclass(frozen=True)
class Norm:
    """One call of a layer norm, or a root-mean-square norm, over the last axis."""

    x: Tensor
    gain: Tensor
    output: Tensor
    bias: Tensor | None = None
    eps: float = 1e-6


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
    """One way to share relevance; activations always pass it on, and constants get nothing.

    At every step relevance is made positive (or of kept |R|) and scaled to its total. `extended`
    lets a rule meet what its authors' model did not have: a product of two activations gives half
    to each side, and a root-mean-square norm passes relevance on.
    """

    name: ClassVar[str]
    #: What of a start's relevance the rule promises to find again at every cut.
    promise: ClassVar[str]
    #: What the authors' text or program has no rule for.
    lacks: ClassVar[tuple[str, ...]] = ("a product of two activations", "a root-mean-square norm")

    def __init__(self, extended: bool = False) -> None:
        self.extended = extended

    def check(self, what: str, where: str) -> None:
        """Refuse what the rule is not defined for, unless it was extended."""
        if what in self.lacks and not self.extended:
            raise UnsupportedModel(
                f"The relevance rule '{self.name}' has no definition for {what} ({where}); use the "
                f"score contribution, or rule='{self.name} extended', which is not the authors'."
            )

    @abstractmethod
    def dense(self, layer: Dense, relevance: Tensor) -> Tensor:
        """Through y = x W + b."""

    @abstractmethod
    def pick(self, layer: Dense, relevance: Tensor) -> Tensor:
        """Through one output of a dense layer at each place: y = sum(x * weight) + b."""

    @abstractmethod
    def add(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Through a + b."""

    @abstractmethod
    def pool(self, x: Tensor, axes: Sequence[int], relevance: Tensor) -> Tensor:
        """Through the sum over some axes, kept as axes of one."""

    @abstractmethod
    def attention(self, call: Attending, relevance: Tensor) -> Sequence[Tensor | None]:
        """Through softmax(q k) v, to q, k and v."""

    def product(self, a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Through a * b."""
        return relevance / 2, relevance / 2

    def layer_norm(self, norm: Norm, relevance: Tensor) -> Tensor:
        """Through a layer norm over the last axis."""
        return relevance

    def rms_norm(self, norm: Norm, relevance: Tensor) -> Tensor:
        """Through a root-mean-square norm over the last axis."""
        return relevance

    @abstractmethod
    def settle(self, flow: Tensor, total: Tensor) -> Tensor:
        """What dense layers sent to one input together, made relevance of this total `[row]`."""


# --- A product of one matrix a row with a vector a row, or with many at once --------------------


def contracted(matrices: Tensor, vectors: Tensor) -> Tensor:
    """`[row, in, out]` times `[row, out]` is `[row, in]`.

    Under `vmap` over many vectors the matrices, which are large, are read once and not copied.

    >>> contracted(torch.ones(2, 1, 3), torch.ones(2, 3))
    tensor([[3.],
            [3.]])
    """
    made: Tensor = _Contraction.apply(matrices, vectors)
    return made


class _Contraction(torch.autograd.Function):
    @staticmethod
    def forward(matrices: Tensor, vectors: Tensor) -> Tensor:
        return (matrices @ vectors[..., None]).squeeze(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Relevance is never differentiated again."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, matrices: Tensor, vectors: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is not None:
            raise NotImplementedError("the matrices of a contraction are shared by all starts")
        columns = vectors.movedim(in_dims[1], -1)  # [row, out, start]
        return matrices @ columns, 2


# --- A step of the network with a rule of its own -----------------------------------------------
# Forward, a step is whatever the model computes. Backward, what arrives is the relevance of its
# output, and `share` says how much of it each input gets. Views, copies and repeated use need no
# rule: what autograd does to gradients there (move them, add them up) is right for relevance.

#: Relevance of a step's output to the relevance of each of its inputs, in their order.
Share = Callable[[Tensor], Sequence[Tensor | None]]


def step(value: Tensor, inputs: Sequence[Tensor], share: Share) -> Tensor:
    """The value, as the output of a step with these inputs.

    >>> x = torch.tensor([1.0, 3.0], requires_grad=True)
    >>> y = step(x.detach() ** 2, [x], lambda relevance: [relevance / 2])
    >>> y.backward(torch.tensor([1.0, 1.0]))
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    made: Tensor = _Step.apply(share, value.detach(), *inputs)
    return made


def fan(x: Tensor, rows: int, settle: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The tensor for several steps that are settled as one, and a place for their totals `[row]`.

    What the steps send back is added up, and so is what they put into the place; then
    `settle(flow, total)` makes relevance of it.
    """
    made: tuple[Tensor, Tensor] = _Fan.apply(x, rows, settle)
    return made


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, share: Share, value: Tensor, *inputs: Tensor) -> Tensor:
        ctx.share = share
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        return None, None, *ctx.share(relevance)


class _Fan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: int, settle: Any) -> tuple[Tensor, Tensor]:
        ctx.settle = settle
        return x.view_as(x), x.new_zeros(rows)

    @staticmethod
    def backward(ctx: Any, flow: Tensor, total: Tensor) -> Any:
        return ctx.settle(flow, total), None, None


# --- Where relevance is counted during one pass -------------------------------------------------
# A counter is a leaf of zeros that stands beside a step; the relevance that the step writes down
# for it arrives as its gradient. So one backward, or many at once, fills all counters.


@dataclass(frozen=True)
class Cut:
    """The entrance of one layer: a place where everything below can be counted.

    `through` counts the relevance of the hidden state, `beside` that of other inputs on the
    same level (an encoder's output that enters a decoder's layer).
    """

    stack: str
    layer: int
    through: Tensor
    beside: list[Tensor]


@dataclass
class RelevanceCounter:
    """The counters of one forward of N rows."""

    rows: int
    heads: dict[Site, Tensor] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    #: How many numbers the largest hidden state holds.
    size: int = 0

    def counter(self, like: Tensor, *more: int) -> Tensor:
        """A fresh counter `[row, ...]` beside a tensor."""
        kind = torch.promote_types(like.dtype, torch.float32)
        return torch.zeros(self.rows, *more, dtype=kind, device=like.device, requires_grad=True)

    def metered(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """The tensor, and a counter of the relevance that comes back through it."""
        counter = self.counter(tensor)
        return step(tensor, [tensor, counter], lambda told: (told, self.by_row(told))), counter

    def enter(self, cut: Cut, like: Tensor) -> None:
        """Begin a layer."""
        self.cuts.append(cut)
        self.size = max(self.size, like.numel())

    def by_row(self, relevance: Tensor) -> Tensor:
        """Summed over everything but the rows, which may have been flattened with the tokens."""
        return relevance.reshape(self.rows, -1).sum(
            dim=1, dtype=torch.promote_types(relevance.dtype, torch.float32)
        )
