"""A model at rest: evaluation mode and an untouched random state, both put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

__all__ = ["at_rest"]


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """Within the block nothing drops out; every module's mode is as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices):
            for module in training:
                module.training = False
            yield
    finally:
        for module in training:
            module.training = True
