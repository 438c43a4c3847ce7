"""What all probes have in common: learned numbers that give every candidate of a word a score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.probes.batch import ProbeBatch
from headcount.probes.layout import END, EXTRA, START

__all__ = ["Scorer", "glorot", "with_root"]


class Scorer(nn.Module):
    """Scores ``[batch, word, candidate]``; candidate 0 is ROOT, candidate j word j - 1."""

    @abstractmethod
    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores, also of candidates that are only padding."""

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each attention head's part of the scores, ``[batch, head, word, candidate]``."""
        raise UsageError("This probe looks at no attention, so no head has a part in its scores.")

    def begin(self, initial: Mapping[str, Any] | None) -> None:
        """Put given numbers in place of those that were drawn."""
        own = dict(self.named_parameters())
        for name, values in (initial or {}).items():
            if name not in own:
                raise UsageError(f"This probe has no weight '{name}'; it has {', '.join(own)}.")
            given = torch.as_tensor(values, dtype=torch.float32)
            if given.shape != own[name].shape:
                raise UsageError(
                    f"The initial {name} has the shape {tuple(given.shape)}; it must be "
                    f"{tuple(own[name].shape)}."
                )
            own[name].data.copy_(given)


def with_root(maps: Tensor, root: Tensor) -> Tensor:
    """Maps ``[..., 2 + n, 2 + n]`` as ``[..., word, candidate]``.

    ROOT's column is what a word gives to start and to end, times two learned numbers.
    """
    rows = maps[..., EXTRA:, :]
    column = root[0] * rows[..., START] + root[1] * rows[..., END]
    return torch.cat([column[..., None], rows[..., EXTRA:]], dim=-1)


def glorot(shape: tuple[int, ...], draw: torch.Generator, fan: int | None = None) -> nn.Parameter:
    """Uniform numbers within the square root of 3 / mean fan, TensorFlow's usual beginning.

    A vector's fan is its length, unless it is given (Glorot & Bengio 2010, equation 16).

    >>> bool(glorot((288,), torch.Generator()).abs().max() <= (3 / 288) ** 0.5)
    True
    """
    ends = (shape[0], shape[-1]) if fan is None else (fan, fan)
    limit = (6 / sum(ends)) ** 0.5
    return nn.Parameter((2 * torch.rand(shape, generator=draw) - 1) * limit)
