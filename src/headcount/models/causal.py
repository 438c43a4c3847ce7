"""Whether attention looks back only, told from its maps."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["looks_back_only"]


def looks_back_only(maps: Tensor) -> bool:
    """Whether no query of square maps `[.., query, key]` puts weight on a later key.

    >>> looks_back_only(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    True
    >>> looks_back_only(torch.tensor([[1.0]]))    # one token tells nothing
    False
    """
    later = torch.ones(maps.shape[-2:], dtype=torch.bool, device=maps.device).triu(1)
    return maps.shape[-2] > 1 and not bool(maps[..., later].any())
