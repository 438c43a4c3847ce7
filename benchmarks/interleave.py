"""Time two or more ways of doing the same work in turns, so that drift hits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def interleaved(ways: Mapping[str, Work], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each way, round by round."""
    for _ in range(warm_up):
        for work in ways.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> dict[str, float]:
    """Median of the rounds' ratios with the middle half of them."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}
