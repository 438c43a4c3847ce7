"""The dials of every step, worked out ahead: a step on the device only looks up its row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .config import Train

__all__ = ["dial_table", "learning_rate", "snapshot_steps"]


def learning_rate(step: int, settings: Train, steps: int) -> float:
    """Straight up to the peak, then down along a cosine to the floor at the last step.

    >>> [round(learning_rate(s, Train(warmup=10, peak=1.0), 110), 2) for s in (0, 9, 60, 109)]
    [0.1, 1.0, 0.5, 0.0]
    """
    if step < settings.warmup:
        return settings.peak * (step + 1) / settings.warmup
    done = min((step - settings.warmup) / max(steps - settings.warmup, 1), 1.0)
    return settings.floor + (settings.peak - settings.floor) * (1 + math.cos(math.pi * done)) / 2


def dial_table(settings: Train, steps: int) -> Tensor:
    """Row by step: learning rate, Adam's two bias corrections, how much of the average is kept."""
    rows = []
    for step in range(steps):
        # A young average forgets faster, or it would hold the random start for long.
        keep = min(settings.ema, (step + 1) / (step + 10))
        first, second = 1 / (1 - 0.9 ** (step + 1)), 1 / (1 - 0.98 ** (step + 1))
        rows.append((learning_rate(step, settings, steps), first, second, keep))
    return torch.tensor(rows, dtype=torch.float32)


def snapshot_steps(steps: int, count: int, first: int = 100) -> list[int]:
    """Log-spaced steps after which the weights are put by; the last is the end.

    >>> snapshot_steps(10_000, 3)
    [100, 1000, 10000]
    """
    if count < 2 or steps <= first:
        return [steps]
    ratio = (steps / first) ** (1 / (count - 1))
    return sorted({round(first * ratio**number) for number in range(count - 1)} | {steps})
