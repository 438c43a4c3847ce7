"""Tests of `stats/bootstrap.py`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import binom

from headcount.errors import StatsError
from headcount.rooms.bench.speed import median_interval
from headcount.stats import bootstrap_interval, mean_interval, ratio_interval, wilson_interval


def sums(x: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, ...]:
    """The streaming sums over sentences, ``[head]`` each, and the number of sentences."""
    parts = (x, n, x * x, x * n, n * n, n > 0)
    return tuple(part.sum(axis=0) for part in parts)


def clustered(sentences: int, heads: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 8, (sentences, heads))
    return rng.binomial(n, rng.beta(2.4, 1.6, n.shape)), n


@pytest.mark.parametrize("sentences", [20, 200])
def test_ratio_interval_covers_the_truth_as_often_as_it_says(sentences: int) -> None:
    found = ratio_interval(*sums(*clustered(sentences, 400, seed=1)))
    assert 0.91 <= np.mean((found.low <= 0.6) & (found.high >= 0.6)) <= 0.98


@pytest.mark.parametrize("sentences", [4, 50])
def test_mean_interval_covers_the_truth_as_often_as_it_says(sentences: int) -> None:
    values = np.random.default_rng(2).normal(0.3, 0.2, (sentences, 400))
    found = mean_interval(values.sum(0), (values**2).sum(0), sentences)
    assert 0.92 <= np.mean((found.low <= 0.3) & (found.high >= 0.3)) <= 0.98


def test_mean_interval_is_students() -> None:
    values = np.random.default_rng(3).normal(5, 2, 30)
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.9)
    found = mean_interval(values.sum(), (values**2).sum(), 30, confidence=0.9)
    assert found == pytest.approx((values.mean(), expected.low, expected.high))


def test_a_ratio_of_equal_counts_is_a_mean() -> None:
    values = np.random.default_rng(4).random((30, 5))
    as_ratio = ratio_interval(*sums(values, np.ones_like(values)))
    as_mean = mean_interval(values.sum(0), (values**2).sum(0), 30)
    assert np.array(as_ratio) == pytest.approx(np.array(as_mean))


def test_ratio_interval_agrees_with_the_bootstrap() -> None:
    x, n = clustered(300, 4, seed=5)
    closed = ratio_interval(*sums(x, n))
    drawn = bootstrap_interval(np.stack([x, n], axis=-1))
    assert np.array(closed) == pytest.approx(np.array(drawn), abs=0.004)


def test_shards_merge_by_adding() -> None:
    x, n = clustered(40, 6, seed=6)
    halves = [sums(x[:13], n[:13]), sums(x[13:], n[13:])]
    merged = ratio_interval(*(a + b for a, b in zip(*halves, strict=True)))
    assert np.array_equal(merged, ratio_interval(*sums(x, n)))


def test_fewer_than_two_sentences_have_no_ends() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ratio = ratio_interval([3, 3, 0], [4, 4, 0], [5, 9, 0], [6, 12, 0], [8, 16, 0], [2, 1, 0])
        mean = mean_interval([3, 3, 0], [5, 9, 0], [2, 1, 0])
    for found in (ratio, mean):
        assert np.isnan(found.low).tolist() == np.isnan(found.high).tolist() == [False, True, True]
        assert np.isnan(found.value).tolist() == [False, False, True]


def test_bounds_cut_the_ends_not_the_value() -> None:
    x, n = np.array([[0], [0], [3]]), np.array([[2], [3], [3]])
    free, cut = (ratio_interval(*sums(x, n), bounds=bounds) for bounds in (None, (0, 1)))
    assert free.low < 0 < 1 < free.high
    assert (cut.value, cut.low, cut.high) == (free.value, 0, 1)


def test_no_spread_gives_no_width_in_spite_of_rounding() -> None:
    n = np.array([0.1, 0.2, 0.7])[:, None] + np.zeros(99)
    x = n * np.linspace(0.01, 0.99, 99)
    total, count, xx, xn, nn, sentences = sums(x, n)
    ratio = total / count
    assert np.any(xx - 2 * ratio * xn + ratio**2 * nn < 0)  # rounding does go below 0 here
    found = ratio_interval(total, count, xx, xn, nn, sentences)
    assert found.high - found.low == pytest.approx(np.zeros(99), abs=1e-6)


def test_scalars_and_heads_broadcast() -> None:
    found = ratio_interval(np.array([3.0, 2.0]), 5.0, np.array([5.0, 2.0]), [7.0, 5.0], 13.0, 2)
    assert found.low.shape == (2,)
    assert isinstance(mean_interval(6, 14, 3).value, float)


def test_wilson_is_that_of_scipy() -> None:
    hits, n = np.array([0, 1, 8, 10]), np.array([10, 10, 10, 10])
    found = wilson_interval(hits, n, confidence=0.9)
    for k, value, low, high in zip(hits, *found, strict=True):
        expected = scipy_stats.binomtest(k, 10).proportion_ci(0.9, method="wilson")
        assert (value, low, high) == pytest.approx((k / 10, expected.low, expected.high))


def test_wilson_without_trials_is_nan() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = wilson_interval([0, 1], [0, 2])
    assert [bool(np.isnan(part[0])) for part in found] == [True, True, True]
    assert 0 < found.low[1] < found.high[1] < 1


def test_wrong_sums_are_named() -> None:
    with pytest.raises(StatsError, match="more hits than trials"):
        wilson_interval(3, 2)
    with pytest.raises(StatsError, match="The sum n is -2 somewhere; it is never below 0"):
        wilson_interval(0, -2)
    with pytest.raises(StatsError, match="The sum sentences is -1 somewhere"):
        mean_interval(1, 1, -1)
    with pytest.raises(StatsError, match="The sum n is -4 somewhere"):
        ratio_interval(1, -4, 1, 1, 1, 2)
    with pytest.raises(StatsError, match="The sums v hold 1 of 2 numbers that are NaN"):
        mean_interval([1, np.nan], [1, 1], 3)
    with pytest.raises(StatsError, match=r"do not fit each other: v \(2,\), vv \(3,\), sentences"):
        mean_interval([1, 2], [1, 1, 1], 3)
    with pytest.raises(StatsError, match="confidence is 1"):
        mean_interval(1, 1, 3, confidence=1)


# --- The interval of a median, against its definition and against simulation --------------------


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
