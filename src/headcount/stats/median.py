"""The median with an interval that no shape of the distribution can upset: for timings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from headcount.stats.inputs import read_finite, read_share
from headcount.stats.results import Interval

__all__ = ["median_interval"]


def median_interval(values: npt.ArrayLike, confidence: float = 0.95) -> Interval:
    """The median of values ``[value]``; the ends are two of the values themselves.

    Conover 1999, section 3.2: as many values lie below the median as heads fall in coin tosses.
    NaN ends where even the outermost values are too near, below 6 values at 95%.

    >>> [float(number) for number in median_interval([3, 1, 2, 5, 4, 6, 20])]
    [4.0, 1.0, 20.0]
    """
    ordered = np.sort(read_finite(values, "values").ravel())
    count = len(ordered)
    tail = (1 - read_share(confidence, "confidence")) / 2
    cut = int(np.sum(bdtr(np.arange(count), count, 0.5) <= tail)) if count else 0
    middle = np.asarray(np.median(ordered) if count else np.nan)[()]
    if not cut:
        return Interval(middle, np.asarray(np.nan)[()], np.asarray(np.nan)[()])
    return Interval(middle, ordered[cut - 1], ordered[count - cut])
