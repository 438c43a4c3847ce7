"""Matrix products in bfloat16 on a GPU, as they are on a CPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

__all__ = ["half"]


def half(device: torch.device | str) -> AbstractContextManager[Any]:
    """No cache: a recording would not repeat its casts."""
    if torch.device(device).type != "cuda":
        return nullcontext()
    return torch.autocast("cuda", torch.bfloat16, cache_enabled=False)
