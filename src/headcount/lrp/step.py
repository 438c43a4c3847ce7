"""A step of the network with a rule of its own: autograd carries relevance instead of gradients.

Forward, a step is whatever the model computes. Backward, what arrives is the relevance of its
output, and `share` says how much of it each input gets. Views, copies and repeated use need no
rule: what autograd does to gradients there (move them, add them up) is right for relevance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["Share", "fan", "step"]

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
