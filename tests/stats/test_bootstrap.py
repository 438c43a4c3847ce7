from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats as scipy_stats

from headcount.errors import StatsError
from headcount.stats import bleu, bootstrap_difference, bootstrap_interval
from headcount.stats import bootstrap as bootstrap_module
from headcount.stats.bootstrap import quantiles


def clustered(
    sentences: int, heads: int, seed: int, centre: float = 0.6, spread: float = 4.0
) -> np.ndarray:
    """Hits and arcs whose chance of a hit differs from sentence to sentence, mean `centre`."""
    rng = np.random.default_rng(seed)
    arcs = rng.integers(1, 8, (sentences, heads))
    chance = rng.beta(centre * spread, (1 - centre) * spread, (sentences, heads))
    return np.stack([rng.binomial(arcs, chance), arcs], axis=-1)


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    # 400 simulated sets, tested as 400 heads; binomial noise on 0.95 is 0.011.
    found = bootstrap_interval(clustered(80, 400, seed=1), draws=2000)
    covered = np.mean((found.low <= 0.6) & (found.high >= 0.6))
    assert 0.91 <= covered <= 0.98


def test_treating_arcs_as_independent_would_not_cover() -> None:
    # What the sentence as unit is for: Wilson's interval on the same clustered arcs is too narrow.
    from headcount.stats import wilson_interval

    sums = clustered(80, 400, seed=1).sum(axis=0)
    wilson = wilson_interval(sums[:, 0], sums[:, 1])
    assert np.mean((wilson.low <= 0.6) & (wilson.high >= 0.6)) < 0.88


def test_difference_covers_and_its_p_is_uniform_under_the_null() -> None:
    ours, theirs = clustered(80, 400, seed=2), clustered(80, 400, seed=3)
    found = bootstrap_difference(ours, theirs, draws=2000, correction="none")
    assert 0.91 <= np.mean((found.low <= 0) & (found.high >= 0)) <= 0.98
    assert scipy_stats.kstest(found.p, "uniform").pvalue > 0.01


def test_a_real_difference_is_found_after_correction() -> None:
    ours, theirs = clustered(150, 20, seed=4), clustered(150, 1, seed=5, centre=0.3)
    found = bootstrap_difference(ours, theirs[:, 0])
    assert np.all(found.p_adjusted < 0.05)
    assert np.all(found.low > 0)
    null = bootstrap_difference(clustered(150, 20, seed=6), clustered(150, 20, seed=7))
    assert np.all(null.p_adjusted > 0.05)


def test_intervals_agree_with_scipy() -> None:
    counts = clustered(60, 1, seed=10)[:, 0]

    def score(hits: np.ndarray, arcs: np.ndarray, axis: int) -> np.ndarray:
        return hits.sum(axis=axis) / arcs.sum(axis=axis)

    theirs = scipy_stats.bootstrap(
        tuple(counts.T),
        score,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="percentile",
        rng=0,
    ).confidence_interval
    ours = bootstrap_interval(counts)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_heads_keep_their_axes_and_one_system_gives_plain_numbers() -> None:
    counts = clustered(20, 6, seed=11)
    grid = bootstrap_interval(counts.reshape(20, 2, 3, 2), draws=100)
    flat = bootstrap_interval(counts, draws=100)
    assert grid.low.shape == (2, 3)
    assert np.array_equal(grid.low.ravel(), flat.low)
    one = bootstrap_interval(counts[:, 4], draws=100)
    assert isinstance(one.low, float)
    assert one.low == flat.low[4]


def test_blocks_of_heads_meet_the_same_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = clustered(20, 7, seed=12), clustered(20, 7, seed=13)
    whole = bootstrap_difference(ours, theirs, draws=1000)
    shared = bootstrap_difference(ours, theirs[:, 0], draws=1000)
    monkeypatch.setattr(bootstrap_module, "_HELD", 3000)
    assert np.array_equal(whole, bootstrap_difference(ours, theirs, draws=1000))
    assert np.array_equal(shared, bootstrap_difference(ours, theirs[:, 0], draws=1000))


def test_the_seed_decides() -> None:
    counts = clustered(20, 1, seed=14)[:, 0]
    assert bootstrap_interval(counts, seed=1) == bootstrap_interval(counts, seed=1)
    assert bootstrap_interval(counts, seed=1) != bootstrap_interval(counts, seed=2)


def test_a_higher_confidence_is_wider() -> None:
    counts = clustered(20, 1, seed=15)[:, 0]
    narrow, wide = (bootstrap_interval(counts, confidence=c) for c in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_any_statistic_of_sums_will_do() -> None:
    rng = np.random.default_rng(16)
    matches = np.sort(rng.integers(0, 9, (40, 3, 4)))[..., ::-1]
    totals = np.array([12, 11, 10, 9]) + np.zeros_like(matches)
    lengths = np.full((40, 3, 2), 12)
    found = bootstrap_interval(np.concatenate([lengths, matches, totals], axis=-1), bleu)
    assert np.all((found.low < found.value) & (found.value < found.high))


def test_no_difference_has_p_1() -> None:
    counts = clustered(30, 4, seed=17)
    found = bootstrap_difference(counts, counts)
    assert np.all(found.value == 0)
    assert np.all(found.p == 1)


def test_p_is_never_below_what_the_sentences_can_say() -> None:
    # All differences equal: every resample gives the same difference, yet 6 sentences are 6.
    ours, theirs = np.array([[2, 2]] * 6), np.array([[0, 2]] * 6)
    assert bootstrap_difference(ours, theirs).p == 2**-5


def test_a_head_seen_in_fewer_than_two_sentences_has_no_interval() -> None:
    counts = clustered(20, 3, seed=18)
    counts[1:, 0] = 0
    counts[:, 1] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bootstrap_interval(counts, draws=500)
        paired = bootstrap_difference(counts, counts[::-1], draws=500)
    assert np.isnan(found.low).tolist() == [True, True, False]
    assert np.isnan(found.value).tolist() == [False, True, False]
    # Head 0 is seen in the first sentence by one system and in the last by the other: two.
    assert np.isnan(paired.p).tolist() == [False, True, False]
    assert np.isnan(paired.p_adjusted).tolist() == [False, True, False]


def test_undefined_draws_are_left_out_of_the_interval() -> None:
    counts = np.zeros((30, 2))
    counts[:3] = [[1, 2], [2, 2], [0, 1]]  # about one draw in twenty has no arc at all
    found = bootstrap_interval(counts)
    assert found.value == pytest.approx(3 / 5)
    assert (found.low, found.high) == (0.0, 1.0)


def test_quantiles_are_those_of_numpy_and_pass_over_nan() -> None:
    drawn = np.random.default_rng(19).normal(size=(101, 4))
    drawn[:50, 3] = np.nan
    found = quantiles(np.sort(drawn, axis=0), np.repeat([[0.1], [0.77]], 4, axis=1))
    assert found == pytest.approx(np.nanquantile(drawn, [0.1, 0.77], axis=0))


def test_too_few_draws_for_the_heads_are_refused() -> None:
    counts = clustered(100, 144, seed=20)
    with pytest.raises(StatsError, match=r"1,000 draws give no p below 1/1001.*14,399 draws"):
        bootstrap_difference(counts, counts[:, 0], draws=1000, level=0.01)
    found = bootstrap_difference(counts, counts[:, 0], draws=1000, level=0.01, correction="none")
    assert np.array_equal(found.p, found.p_adjusted)


def test_heads_without_a_value_do_not_count_as_tests() -> None:
    counts = clustered(100, 144, seed=21)
    counts[:, 3:] = 0
    found = bootstrap_difference(counts, counts[::-1], draws=1000, level=0.01)
    assert np.count_nonzero(~np.isnan(found.p_adjusted)) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"draws": 0}, r"number of draws is 0; give a whole number from 1 up"),
        ({"draws": 10.5}, r"number of draws is 10.5"),
        ({"seed": "a"}, r"seed is 'a'; give a whole number of 0 or more"),
        ({"seed": None}, r"seed is None"),
        ({"seed": 1.0}, r"seed is 1.0"),
        ({"seed": True}, r"seed is True"),
        ({"seed": -1}, r"seed is -1"),
        ({"confidence": 95}, r"confidence is 95; give a number between 0 and 1"),
    ],
)
def test_wrong_settings_are_named(call: dict[str, object], message: str) -> None:
    counts = clustered(10, 1, seed=22)[:, 0]
    with pytest.raises(StatsError, match=message):
        bootstrap_interval(counts, **call)
    with pytest.raises(StatsError, match=message):
        bootstrap_difference(counts, counts, **call)


def test_wrong_corrections_are_named() -> None:
    counts = clustered(10, 1, seed=23)[:, 0]
    with pytest.raises(StatsError, match="no correction 'sidak'; choose one of holm, bh, none"):
        bootstrap_difference(counts, counts, correction="sidak")


def test_negative_counts_are_refused() -> None:
    counts = clustered(10, 1, seed=24)[:, 0]
    counts[3, 1] = -2
    with pytest.raises(StatsError, match="A count is -2; the second statistic of a ratio counts"):
        bootstrap_interval(counts)
