"""The jackknife over groups of sentences: an interval for any figure that sums make up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from headcount.errors import StatsError
from headcount.stats.results import Interval

__all__ = ["jackknife_interval"]


def jackknife_interval(
    value: npt.ArrayLike, without: npt.ArrayLike, confidence: float = 0.95
) -> Interval:
    """A figure of all sentences, and its interval from the figures without each group.

    `without` is `[group, ...]`. Delete-a-group jackknife (Tukey 1958; Kott 2001) with Student's
    t. A difference between two models that read the same sentences is such a figure, so what
    sentences do to both cancels.

    >>> sample = np.array([3.0, 5.0, 4.0, 6.0])
    >>> left = [np.delete(sample, place).mean() for place in range(4)]
    >>> [round(float(number), 3) for number in jackknife_interval(sample.mean(), left)]
    [4.5, 2.446, 6.554]
    """
    figure, left = np.asarray(value, np.float64), np.asarray(without, np.float64)
    groups = len(left)
    if groups < 2:
        raise StatsError(f"There is {groups} group of sentences; a jackknife needs two or more.")
    spread = ((left - left.mean(0)) ** 2).sum(0) * (groups - 1) / groups
    half = np.sqrt(spread) * stdtrit(groups - 1, 0.5 + confidence / 2)
    return Interval(figure, figure - half, figure + half)
