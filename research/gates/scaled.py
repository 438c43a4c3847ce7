"""Head scales inside the translator's own modules, so that its layers compile as two programs.

A valve finds its module by identity: under `torch.compile` every layer would be a program of its
own. Here each output projection scales its input itself, by a leaf whose gradient is handed on to
the gates by hand. A test holds the two ways against each other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.models.subject import Subject

__all__ = ["Scaled"]


class ScaledLinear(nn.Linear):
    """An output projection whose heads arrive scaled."""

    scale: nn.Parameter

    def forward(self, states: Tensor) -> Tensor:
        """Project the heads side by side, each times its scale."""
        scale = self.scale.to(states.dtype).repeat_interleave(self.in_features // len(self.scale))
        return functional.linear(states * scale, self.weight, self.bias)


class Scaled:
    """All head scales of a translator, in the order of its heads; 1 at first."""

    def __init__(self, subject: Subject) -> None:
        self.leaves: list[nn.Parameter] = []
        for module in _projections(subject.model):
            heads = subject.model.config.encoder_attention_heads
            module.__class__ = ScaledLinear
            leaf = nn.Parameter(torch.ones(heads, device=module.weight.device))
            module.scale = leaf
            self.leaves.append(leaf)
        self.sizes = [len(leaf) for leaf in self.leaves]

    @torch.no_grad()
    def set(self, scales: Tensor) -> None:
        """Scale the heads by these numbers from here on. `[head]`"""
        torch._foreach_copy_(self.leaves, list(scales.split(self.sizes)))

    def gradient(self) -> Tensor:
        """The gradient of the last backward pass, which is then let go. `[head]`"""
        found = torch.cat([leaf.grad for leaf in self.leaves if leaf.grad is not None])
        for leaf in self.leaves:
            leaf.grad = None
        return found


def _projections(model: Any) -> list[Any]:
    """Output projections in the order enc, dec, cross."""
    below, above = model.model.encoder.layers, model.model.decoder.layers
    return [
        *(layer.self_attn.out_proj for layer in below),
        *(layer.self_attn.out_proj for layer in above),
        *(layer.encoder_attn.out_proj for layer in above),
    ]
