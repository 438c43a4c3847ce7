"""Families outside the interface: scale the input of the output projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from headcount.models.anatomy import Anatomy

__all__ = ["scaled_projections"]


@contextmanager
def scaled_projections(
    model: nn.Module, anatomy: Anatomy, multiply: Callable[[nn.Module, Tensor], Tensor]
) -> Iterator[None]:
    """Scale heads of sites whose route is `projection`, for this block."""
    yield
