"""A model whose weights take no gradient: what is asked of its heads needs none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["frozen"]


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Within the block no weight asks for a gradient; each is as it was afterwards.

    >>> layer = nn.Linear(2, 1)
    >>> with frozen(layer):
    ...     layer.weight.requires_grad
    False
    >>> layer.weight.requires_grad
    True
    """
    asking = [weight for weight in model.parameters() if weight.requires_grad]
    try:
        for weight in asking:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in asking:
            weight.requires_grad_(True)
