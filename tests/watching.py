"""A display of progress for tests, which may also break the work off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headcount as hc


class Watch:
    """Calls ``call(done, total, title)`` at each step, and keeps what is said."""

    def __init__(self, call: Callable[[int, int, str], Any]) -> None:
        self.call, self.said = call, list[Any]()
        self.open: list[list[Any]] = []

    def start(self, total: int, title: str) -> None:
        self.open.append([0, total, title])

    def advance(self, n: int = 1) -> None:
        self.open[-1][0] += n
        self.call(*self.open[-1])

    def done(self) -> None:
        self.open.pop()

    def say(self, what: Any) -> None:
        self.said.append(what)


def told(call: Callable[[int, int, str], Any]) -> hc.progress:
    """Within the block, progress is told to a function: it may note it, or break the work off."""
    return hc.progress(Watch(call))
