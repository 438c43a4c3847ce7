"""Scores as functions of summed sufficient statistics: ``[..., statistic]`` becomes ``[...]``.

Any function of that shape will do; these are the ones every part of the toolkit needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headcount.errors import StatsError
from headcount.stats.results import Floats

__all__ = ["Statistic", "bleu", "check_statistic", "ratio"]

Statistic = Callable[[Floats], Floats]


def ratio(sums: Floats) -> Floats:
    """A ratio of sums, (hits, counts): hits / counts, NaN where nothing was counted.

    >>> ratio(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([0.75,  nan])
    """
    if sums.shape[-1] != 2:
        raise StatsError(
            f"A ratio is made of 2 statistics, hits and counts, not of {sums.shape[-1]}."
        )
    hits, counts = sums[..., 0], sums[..., 1]
    # Sums of fractions that cancel may round to just below 0; a real count is not that small.
    if np.any(counts < 0) and counts.min() < -1e-9 * np.abs(counts).max():
        raise StatsError(
            f"A count is {counts.min():g}; the second statistic of a ratio counts things, "
            "so it is never below 0."
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0, hits / counts, np.nan)


def bleu(sums: Floats) -> Floats:
    """Corpus BLEU, 0 to 100, of (lengths of output and reference, 4 matches, 4 totals).

    Papineni et al. 2002, section 2.3; zero matches are smoothed as mteval-v13a and sacreBLEU do.

    >>> bleu(np.array([9.0, 10, 9, 6, 4, 2, 9, 8, 7, 6])).round(2)
    np.float64(55.01)
    """
    if sums.shape[-1] != 10:
        raise StatsError(f"BLEU is made of 10 statistics, not of {sums.shape[-1]}.")
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2:6], sums[..., 6:10]
    misses = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**misses, matches)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.exp(np.log(smoothed / totals).mean(axis=-1))
        score = 100 * precision * np.exp(np.minimum(0.0, 1 - reference / length))
    seen = np.all(totals > 0, axis=-1) & np.any(matches > 0, axis=-1)
    return np.where(seen, score, 0.0)[()]


def check_statistic(statistic: Statistic, statistics: Floats) -> None:
    """Try the function on each sentence alone: what is wrong shows before the draws.

    >>> check_statistic(lambda sums: sums.sum(), np.ones((5, 3, 2)))
    Traceback (most recent call last):
    headcount.errors.StatsError: The statistic turns sums of shape (5, 3, 2) into (); it must drop
    the last axis and keep the others: (5, 3).
    """
    shape = np.shape(statistic(statistics))
    if shape != statistics.shape[:-1]:
        raise StatsError(
            f"The statistic turns sums of shape {statistics.shape} into {shape}; it must drop the "
            f"last axis and keep the others: {statistics.shape[:-1]}."
        )
