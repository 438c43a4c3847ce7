"""The statistics again, in loops, from their textbook definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from headcount import stats
from headcount.rooms.agreement.ranks import correlate_weighted, rank_agreement

DRAWS = 500
SEED = 11


def some_counts(sentences: int = 25, heads: int = 3, seed: int = 0) -> np.ndarray:
    """Hits and arcs, ``[sentence, head, 2]``; some sentences have no arc."""
    rng = np.random.default_rng(seed)
    arcs = rng.integers(0, 6, (sentences, heads))
    return np.stack([rng.binomial(arcs, 0.6), arcs], axis=-1)


def slow_ratio(rows: list[tuple[int, int]]) -> float:
    hits = arcs = 0
    for x, n in rows:
        hits += x
        arcs += n
    return hits / arcs


def slow_draws(sentences: int, draws: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, sentences, sentences).tolist() for _ in range(draws)]


def slow_replicates(rows: list[tuple[int, int]], draws: int, seed: int) -> list[float]:
    resamples = slow_draws(len(rows), draws, seed)
    return [slow_ratio([rows[i] for i in resample]) for resample in resamples]


def test_bootstrap_interval() -> None:
    counts = some_counts()
    found = stats.bootstrap_interval(counts, draws=DRAWS, seed=SEED)
    for head in range(3):
        rows = [tuple(row) for row in counts[:, head].tolist()]
        drawn = slow_replicates(rows, DRAWS, SEED)
        low, high = np.quantile(drawn, [0.025, 0.975])
        value = slow_ratio(rows)
        assert found.value[head] == pytest.approx(value)
        assert (found.low[head], found.high[head]) == pytest.approx((low, high), abs=1e-12)


def test_bootstrap_difference() -> None:
    ours, theirs = some_counts(seed=1), some_counts(heads=1, seed=2)[:, 0]
    found = stats.bootstrap_difference(ours, theirs, draws=DRAWS, seed=SEED, correction="none")
    baseline = [tuple(row) for row in theirs.tolist()]
    for head in range(3):
        rows = [tuple(row) for row in ours[:, head].tolist()]
        value = slow_ratio(rows) - slow_ratio(baseline)
        as_far = 0
        for resample in slow_draws(len(rows), DRAWS, SEED):
            drawn = slow_ratio([rows[i] for i in resample])
            drawn -= slow_ratio([baseline[i] for i in resample])
            as_far += abs(drawn - value) >= abs(value)
        assert found.value[head] == pytest.approx(value)
        assert found.p[head] == pytest.approx((as_far + 1) / (DRAWS + 1))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_sign_flip(alternative: str) -> None:
    differences = np.random.default_rng(3).normal(0.4, 1, 9).round(1)
    found = stats.sign_flip(differences, alternative=alternative)
    observed = sum(differences)
    as_far = patterns = 0
    for signs in itertools.product([1, -1], repeat=9):
        total = sum(sign * x for sign, x in zip(signs, differences, strict=True))
        slack = 1e-9
        patterns += 1
        as_far += {
            "two-sided": abs(total) >= abs(observed) - slack,
            "greater": total >= observed - slack,
            "less": total <= observed + slack,
        }[alternative]
    assert found.value == pytest.approx(observed / 9)
    assert found.p == pytest.approx(as_far / patterns)


def test_exact_swap_of_ratios_with_their_own_counts() -> None:
    ours, theirs = some_counts(9, 1, seed=4)[:, 0], some_counts(9, 1, seed=5)[:, 0]
    found = stats.sign_flip_scores(ours, theirs)
    pairs = list(zip(ours.tolist(), theirs.tolist(), strict=True))

    def difference(swaps: tuple[bool, ...]) -> float:
        traded = [(b, a) if swap else (a, b) for swap, (a, b) in zip(swaps, pairs, strict=True)]
        return slow_ratio([a for a, _ in traded]) - slow_ratio([b for _, b in traded])

    observed = difference((False,) * 9)
    every = [difference(swaps) for swaps in itertools.product([False, True], repeat=9)]
    as_far = sum(abs(x) >= abs(observed) - 1e-12 for x in every)
    assert found.value == pytest.approx(observed)
    assert found.p == pytest.approx(as_far / len(every))


def test_holm_and_benjamini_hochberg() -> None:
    p = np.random.default_rng(6).uniform(0, 0.2, 30).tolist()
    order = sorted(range(30), key=lambda i: p[i])
    holm, worst = [0.0] * 30, 0.0
    for place, i in enumerate(order):
        worst = max(worst, (30 - place) * p[i])
        holm[i] = min(worst, 1.0)
    bh, best = [0.0] * 30, 1.0
    for place in reversed(range(30)):
        i = order[place]
        best = min(best, p[i] * 30 / (place + 1))
        bh[i] = best
    assert stats.holm(p) == pytest.approx(holm)
    assert stats.benjamini_hochberg(p) == pytest.approx(bh)


def test_ratio_interval_is_the_delta_method() -> None:
    rows = [tuple(row) for row in some_counts(40, 1)[:, 0].tolist() if row[1]]
    ratio = slow_ratio(rows)
    count = len(rows)
    mean_arcs = sum(n for _, n in rows) / count
    residuals = [x - ratio * n for x, n in rows]
    variance = sum(e**2 for e in residuals) / (count - 1)
    error = math.sqrt(variance / count) / mean_arcs
    t = scipy_stats.t.ppf(0.975, count - 1)
    sums = [
        sum(term(x, n) for x, n in rows)
        for term in (
            lambda x, n: x,
            lambda x, n: n,
            lambda x, n: x * x,
            lambda x, n: x * n,
            lambda x, n: n * n,
        )
    ]
    found = stats.ratio_interval(*sums, count)
    assert found == pytest.approx((ratio, ratio - t * error, ratio + t * error))


SCIPY = {
    "spearman": scipy_stats.spearmanr,
    "kendall": scipy_stats.kendalltau,
    "pearson": scipy_stats.pearsonr,
}


@pytest.mark.parametrize("kind", SCIPY)
def test_correlations_with_ties_and_repeated_heads(kind: str) -> None:
    rng = np.random.default_rng(7)
    one = rng.integers(0, 5, 12).astype(float)  # five levels: many ties
    two = one + rng.integers(0, 4, 12)
    picks = rng.integers(0, 12, (40, 12))
    weights = np.stack([np.bincount(row, minlength=12) for row in picks]).astype(float)
    fast = correlate_weighted(one, two, weights, kind)
    for row, found in zip(picks, fast, strict=True):
        expected = SCIPY[kind](one[row], two[row])[0]
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", SCIPY)
def test_rank_agreement(kind: str) -> None:
    rng = np.random.default_rng(8)
    one = rng.normal(size=15)
    two = one + rng.normal(size=15)
    found = rank_agreement(one, two, kind, draws=300, seed=SEED)
    drawn = [SCIPY[kind](one[row], two[row])[0] for row in slow_draws(15, 300, SEED)]
    assert found.value == pytest.approx(SCIPY[kind](one, two)[0])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
