"""Time two or more ways of doing the same work in turns, and compare them round by round."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import torch

from headcount.pruning.speed import Work, interleaved

__all__ = ["Work", "interleaved", "ratio", "waited"]


def waited(work: Work) -> Work:
    """The work with the GPU waited for: its queue is not its work."""

    def done() -> None:
        work()
        torch.cuda.synchronize()

    return done


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> dict[str, float]:
    """Median of the rounds' ratios with the middle half of them."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}
