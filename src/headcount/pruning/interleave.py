"""Time two or more ways of doing the same work in turns, so that drift hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

__all__ = ["Work", "interleaved", "waited"]

Work = Callable[[], object]


def interleaved(ways: Mapping[str, Work], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each way, round by round; every other round goes backwards.

    >>> found = interleaved({"one": lambda: None, "two": lambda: None}, rounds=3)
    >>> {name: len(seconds) for name, seconds in found.items()}
    {'one': 3, 'two': 3}
    """
    for _ in range(warm_up):
        for work in ways.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        names = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for name in names:
            start = time.perf_counter()
            ways[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def waited(work: Work, device: torch.device) -> Work:
    """The work with the device waited for: a GPU's queue is not its work."""
    if device.type != "cuda":
        return work

    def done() -> None:
        work()
        torch.cuda.synchronize(device)

    return done
