"""Where relevance is counted during one pass: at every head, at every layer's entrance, in biases.

A counter is a leaf of zeros that stands beside a step; the relevance that the step writes down
for it arrives as its gradient. So one backward, or many at once, fills all counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from headcount.lrp.step import step
from headcount.models.site import Site

__all__ = ["Cut", "Ledger"]


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
class Ledger:
    """The counters of one forward of so many rows."""

    rows: int
    heads: dict[Site, Tensor] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    #: What biases kept between one layer's entrance and the next, `[row]`.
    biases: list[Tensor] = field(default_factory=list)
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
        """Begin a layer: what biases keep from here on is counted apart."""
        self.cuts.append(cut)
        self.size = max(self.size, like.numel())
        self.biases.append(self.counter(like))

    def by_row(self, relevance: Tensor) -> Tensor:
        """Summed over everything but the rows, which may have been flattened with the tokens."""
        return relevance.reshape(self.rows, -1).sum(
            dim=1, dtype=torch.promote_types(relevance.dtype, torch.float32)
        )
