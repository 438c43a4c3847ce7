"""All weights as one flat vector: Adam, a running average and a checkpoint in a few tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Weights", "spread"]

_BETAS, _EPSILON = (0.9, 0.98), 1e-9  # Vaswani et al. 2017, section 5.3


def spread(flat: Tensor, parameters: list[nn.Parameter]) -> None:
    """Make the parameters windows into the flat vector, in order."""
    start = 0
    for parameter in parameters:
        window = flat[start : start + parameter.numel()]
        parameter.data = window.view(parameter.shape)
        start += parameter.numel()


class Weights:
    """The learning weights in single precision, what Adam remembers, and their average.

    The model works on `work`, a copy in the model's own precision; nothing here waits for the
    host, so that a whole step can be captured as one CUDA graph.
    """

    def __init__(self, parameters: list[nn.Parameter], exact: Tensor) -> None:
        """Start from `exact`, the parameters in single precision end to end."""
        self.parameters = parameters
        self.master = exact.clone()
        self.mean = torch.zeros_like(self.master)
        self.square = torch.zeros_like(self.master)
        self.average = self.master.clone()
        self.norm = self.master.new_zeros(())
        dtype = parameters[0].dtype
        self.work = self.master if dtype == torch.float32 else self.master.to(dtype)
        spread(self.work, parameters)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint must hold."""
        names = ("master", "mean", "square", "average")
        return {name: getattr(self, name) for name in names}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back what a checkpoint held."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])
        self._refresh()

    def gradient(self) -> Tensor:
        """The gradients of the last backward pass as one vector, which are then let go."""
        grads = [p.grad.flatten() for p in self.parameters if p.grad is not None]
        flat = torch.cat(grads).float()
        for parameter in self.parameters:
            parameter.grad = None
        return flat

    @torch.no_grad()
    def step(self, gradient: Tensor, dials: Tensor, clip: float) -> None:
        """One Adam step (Kingma and Ba 2015, algorithm 1), turned by the schedule's dials."""
        rate, first, second, keep = dials.unbind()
        self.norm.copy_(gradient.norm())
        gradient = gradient * (clip / (self.norm + 1e-6)).clamp(max=1.0)
        self.mean.lerp_(gradient, 1 - _BETAS[0])
        self.square.lerp_(gradient.square(), 1 - _BETAS[1])
        change = self.mean * first / ((self.square * second).sqrt() + _EPSILON)
        self.master.sub_(rate * change)
        self.average.lerp_(self.master, 1 - keep)
        self._refresh()

    def _refresh(self) -> None:
        if self.work is not self.master:
            self.work.copy_(self.master)
