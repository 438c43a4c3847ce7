"""How fast the steps are, looks at dev left out, and how many of them fit a time limit."""

from __future__ import annotations

import time

__all__ = ["Clock"]

_MEASURED = 20.0  # seconds of steps before the speed is believed
_CLOSING = 20.0  # seconds kept back for the end
_OVERHEAD = 1.15  # looks at dev and checkpoints, as a share of the steps


class Clock:
    """Counts steps and the seconds they took."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit, self.started = limit, time.monotonic()
        self.busy, self.steps = 0.0, 0
        self._since, self._from = self.started, 0
        self._fitted = limit is None

    def start(self, step: int) -> None:
        """Steps begin (again) after this one."""
        self._since, self._from = time.monotonic(), step

    def stop(self, step: int) -> None:
        """Steps pause after this one; the device has finished it."""
        self.busy += time.monotonic() - self._since
        self.steps += step - self._from

    @property
    def speed(self) -> float:
        """Steps a second."""
        return self.steps / max(self.busy, 1e-9)

    @property
    def seconds(self) -> float:
        """Since the clock was made."""
        return time.monotonic() - self.started

    def fit(self, step: int, steps: int) -> int:
        """How many steps the run should have: fewer than planned if the limit calls for it.

        Decided once, as soon as the speed is known; the warm-up does not depend on it.
        """
        if self._fitted or self.limit is None or self.busy < min(_MEASURED, self.limit / 10):
            return steps
        self._fitted = True
        left = max(self.limit - self.seconds - _CLOSING, 0.0)
        return min(steps, step + 1 + int(left * self.speed / _OVERHEAD))
