"""Time two or more ways of doing the same work in turns, and compare them round by round."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from pathlib import Path

import torch

from headcount.rooms.bench.speed import Work, interleaved

__all__ = ["Work", "interleaved", "peak_mib", "ratio", "waited"]


def waited(work: Work) -> Work:
    """The work with the GPU waited for: its queue is not its work."""

    def done() -> None:
        work()
        torch.cuda.synchronize()

    return done


def peak_mib() -> int:
    """The most memory that this process has taken so far.

    Not `ru_maxrss`: a process that is started anew inherits that of who started it.
    """
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> dict[str, float]:
    """Median of the rounds' ratios with the middle half of them."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}
