"""What the statistics answer with: plain named tuples of arrays, one entry per head."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Counts", "Floats", "Interval", "PairedDifference", "PairedTest"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int_]


class Interval(NamedTuple):
    """A value with the ends of its interval; NaN where there is nothing to say."""

    value: Floats
    low: Floats
    high: Floats


class PairedTest(NamedTuple):
    """A difference of two systems with its p value, plain and corrected over all heads tested."""

    value: Floats
    p: Floats
    p_adjusted: Floats


class PairedDifference(NamedTuple):
    """A difference of two systems with its interval and its p values."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    p_adjusted: Floats
