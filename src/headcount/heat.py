"""How strongly a cell is shaded: a value's place in its column, in ten steps."""

from __future__ import annotations

import math

import numpy as np

from headcount.columns import Column

__all__ = ["STEPS", "heat_steps"]

#: The strongest step; 0 is no shade at all.
STEPS = 9


def heat_steps(column: Column, values: np.ndarray) -> list[int]:
    """A step from 0 to 9 for each value; below 0 on a column whose sign matters, 0 for NA.

    >>> heat_steps(Column("self", range=(0, 1)), np.array([0.0, 0.5, 1.0, np.nan]))
    [0, 4, 9, 0]
    """
    low, high = _span(column, values)
    return [_step(value, low, high, column.diverging) for value in values.tolist()]


def _span(column: Column, values: np.ndarray) -> tuple[float, float]:
    """The column's own bounds, and the values' where it has none."""
    finite = values[np.isfinite(values)]
    low, high = column.range
    seen = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    return (seen[0] if low is None else low), (seen[1] if high is None else high)


def _step(value: float, low: float, high: float, diverging: bool) -> int:
    if math.isnan(value):
        return 0
    if diverging:
        low, high = 0.0, max(abs(low), abs(high))
    if high <= low:
        return 0
    if math.isinf(high - low):  # numbers near the largest float: halves have a range
        value, low, high = value / 2, low / 2, high / 2
    share = (abs(value) if diverging else value) - low
    step = round(STEPS * min(max(share / (high - low), 0.0), 1.0))
    return -step if diverging and value < 0 else step
