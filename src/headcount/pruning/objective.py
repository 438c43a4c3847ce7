"""What is minimised when gates learn: the task's loss, and a price for every open gate.

Voita et al. 2019 (eq. 7): loss + lambda * sum of P(open). A price that is set by hand gives a
number of heads that nobody chose; `Target` sets the price so that the number comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.pruning.gates import Gates, check_convention

__all__ = ["Penalty", "Price", "Target"]


class Penalty(Protocol):
    """Something added to the loss per token; `step` counts optimiser steps from 0."""

    def __call__(self, gates: Gates, step: Tensor | int) -> Tensor:
        """The price of the gates as they are."""


@dataclass
class Price:
    """The paper's penalty: lambda for every head that is expected to stay.

    `weight` is lambda, or a function that gives it for each step; `warmup` steps lead straight
    from 0 to it. Under the convention "code" the sums of the attention modules are averaged, not
    added, as the authors' program does: their `concrete_coef` is then lambda.
    """

    weight: float | Callable[[int], float]
    warmup: int = 0
    convention: str = "headcount"

    def __post_init__(self) -> None:
        """Refuse a convention that is none, and a price that would pay for open gates."""
        check_convention(self.convention)
        if not callable(self.weight) and not 0 <= self.weight < float("inf"):
            raise UsageError(f"The price of an open gate is {self.weight:g}; it must be 0 or more.")

    def __call__(self, gates: Gates, step: Tensor | int) -> Tensor:
        """Lambda times the expected number of open gates."""
        share = 1.0 if not self.warmup else _ramp(step, self.warmup, gates.log_a.device)
        weight = self.weight(int(step)) if callable(self.weight) else self.weight
        return weight * share * gates.expected() / self._modules(gates)

    def _modules(self, gates: Gates) -> int:
        if self.convention != "code":
            return 1
        return len({(head.stack, head.layer) for head in gates.heads})


class Target(nn.Module):
    """A price that drives the expected number of open gates down to a target and holds it.

    The number wanted falls in a straight line from all gates to `count` over `steps` steps. The
    price is a Lagrange multiplier: it rises while more gates are open than wanted and falls
    when there are fewer (the gradient ascent of Wang et al. 2020, section 3.2), with a quadratic
    term that keeps it from swinging. With `hard` the gates that are open at test time count,
    not the expected number: gates that cannot decide do not count as a part of a head.
    """

    multiplier: Tensor

    def __init__(
        self,
        count: float,
        *,
        steps: int,
        rate: float = 1.0,
        stiffness: float = 20.0,
        hard: bool = False,
    ) -> None:
        super().__init__()
        if count < 0 or steps < 1:
            raise UsageError(
                f"A target of {count} heads in {steps} steps cannot be; give 0 or more heads and "
                "at least 1 step."
            )
        self.count, self.steps, self.rate, self.stiffness = count, steps, rate, stiffness
        self.hard = hard
        self.register_buffer("multiplier", torch.zeros(()))

    def forward(self, gates: Gates, step: Tensor | int) -> Tensor:
        """Multiplier times the excess share, and its square; moves the multiplier in training."""
        total = len(gates.heads)
        wanted = total + (self.count - total) * _ramp(step, self.steps, gates.log_a.device)
        excess = (self._there(gates) - wanted) / total
        if gates.training:
            with torch.no_grad():
                self.multiplier.add_(self.rate * excess)
        return self.multiplier * excess + self.stiffness * excess.square()

    def _there(self, gates: Gates) -> Tensor:
        """How many heads stay; the gradient is that of the expected number either way."""
        expected = gates.expected()
        return expected + (gates.open().sum() - expected).detach() if self.hard else expected


def _ramp(step: Tensor | int, steps: int, device: torch.device) -> Tensor:
    """From 0 to 1 in so many steps."""
    return (torch.as_tensor(step, device=device) / steps).clamp(0, 1)
