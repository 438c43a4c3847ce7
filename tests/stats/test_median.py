"""The interval of a median, against its definition and against simulation."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from headcount.stats.intervals import median_interval


def test_the_ends_are_the_outermost_ranks_that_the_binomial_allows() -> None:
    found = median_interval(np.arange(1, 16))
    # Ranks 4 and 12 of 15: P(at most 3 of 15 below) = 0.0176, at most 4 would be 0.0592.
    assert (found.low, found.value, found.high) == (4, 8, 12)
    assert binom.cdf(3, 15, 0.5) <= 0.025 < binom.cdf(4, 15, 0.5)


def test_it_covers_the_median_of_a_skewed_distribution() -> None:
    noise = np.random.default_rng(0)
    drawn = np.exp(2 * noise.standard_normal((2000, 15)))
    inside = [low <= 1 <= high for _, low, high in map(median_interval, drawn)]
    assert np.mean(inside) > 0.95


def test_few_values_have_a_median_and_no_interval() -> None:
    found = median_interval([1.0, 2.0, 3.0])
    assert found.value == 2
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    assert np.isnan(median_interval([]).value)
