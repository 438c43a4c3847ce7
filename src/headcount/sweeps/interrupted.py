"""Ctrl-C in the middle of a sweep: what was measured so far goes along."""

from __future__ import annotations

from headcount.sweeps.result import Sweep

__all__ = ["SweepInterrupted"]


class SweepInterrupted(KeyboardInterrupt):
    """The user broke a sweep off; `sweep` holds every intervention on the examples done so far."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__()
        self.sweep = sweep
