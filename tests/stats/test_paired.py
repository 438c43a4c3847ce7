"""Tests of `stats/paired.py`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.stats import binomtest

from headcount import stats
from headcount.errors import StatsError
from headcount.rooms.words.counts import SMALLEST, sign_flip_counts
from headcount.stats import bleu, holm, mcnemar, paired, sign_flip, sign_flip_scores


def test_it_is_the_binomial_test_of_the_disagreements() -> None:
    rng = np.random.default_rng(0)
    baseline = rng.random(200) < 0.8
    correct = np.stack([rng.random(200) < share for share in np.linspace(0.5, 0.95, 30)], axis=1)
    found = mcnemar(correct, baseline)
    for head in range(30):
        wins = int(np.sum(correct[:, head] & ~baseline))
        losses = int(np.sum(~correct[:, head] & baseline))
        expected = binomtest(wins, wins + losses).pvalue
        assert found.p[head] == pytest.approx(expected, rel=1e-9)
        assert found.value[head] == pytest.approx(correct[:, head].mean() - baseline.mean())
    assert np.all(found.p_adjusted >= found.p)
    assert np.any(found.p_adjusted < 0.05)


def test_small_counts_and_ties_against_the_binomial_test() -> None:
    for wins in range(7):
        for losses in range(7):
            ours = np.array([1] * wins + [0] * losses + [1] * 10)
            theirs = np.array([0] * wins + [1] * losses + [1] * 10)
            expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
            assert mcnemar(ours, theirs).p == pytest.approx(expected)


def test_it_is_the_exact_sign_flip_test_of_outcomes() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.integers(0, 2, (15, 6)), rng.integers(0, 2, (15, 6))
    assert mcnemar(ours, theirs).p == pytest.approx(sign_flip(ours - theirs).p)


def test_axes_are_kept() -> None:
    outcomes = np.random.default_rng(2).integers(0, 2, (30, 2, 3))
    assert mcnemar(outcomes, outcomes[:, 0, 0]).p_adjusted.shape == (2, 3)


def test_what_is_no_outcome() -> None:
    with pytest.raises(StatsError, match=r"neither 0 \(wrong\) nor 1 \(right\)"):
        mcnemar([0, 1, 2], [0, 1, 1])
    with pytest.raises(StatsError, match="2 and 3 sentences"):
        mcnemar([0, 1], [0, 1, 1])


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(StatsError, match=r"on 5 sentences gives no p below 2\^-4.*at least 6"):
        mcnemar([1] * 5, [0] * 5)


# --- The one-sided test of a ratio --------------------------------------------------------------


def sums(x: np.ndarray, n: np.ndarray) -> tuple[float, ...]:
    return x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x)


def test_with_equal_sentences_it_is_the_plain_t_test() -> None:
    x = np.random.default_rng(0).normal(0.3, 1, 30)
    ones = np.ones(30)
    wanted = scipy_stats.ttest_1samp(x, 0.1, alternative="greater").pvalue
    assert stats.ratio_test(*sums(x, ones), null=0.1) == pytest.approx(wanted, rel=1e-9)


def test_a_value_below_the_null_has_a_large_p() -> None:
    x, n = np.array([1.0, 0, 2, 1]), np.array([4.0, 5, 4, 3])
    assert stats.ratio_test(*sums(x, n), null=0.9) > 0.95


def test_sentences_that_all_agree_have_the_p_of_their_signs() -> None:
    n = np.array([4.0, 5, 4, 3])
    assert stats.ratio_test(*sums(n, n), null=0.5) == 0.5**4


def test_a_tie_is_no_evidence() -> None:
    n = np.array([4.0, 5, 4, 3])
    assert stats.ratio_test(*sums(n, n), null=1.0) == 0.5


def test_nothing_seen_and_one_sentence_have_no_p() -> None:
    assert np.isnan(stats.ratio_test(0, 0, 0, 0, 0, 0))
    assert np.isnan(stats.ratio_test(3, 4, 9, 12, 16, 1))


def test_heads_are_tested_side_by_side() -> None:
    n = np.array([4.0, 5, 4, 3])
    x = np.array([[3.0, 1], [4, 1], [4, 0], [2, 1]])
    both = stats.ratio_test(x.sum(0), n.sum(), (x * x).sum(0), n @ x, n @ n, 4, null=0.4)
    alone = [stats.ratio_test(*sums(x[:, k], n), null=0.4) for k in range(2)]
    np.testing.assert_allclose(both, alone)


# --- The sign-flip test ---------------------------------------------------------------------------


def counts(sentences: int, heads: int, seed: int, centre: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    arcs = rng.integers(1, 8, (sentences, 1)) + np.zeros((1, heads), dtype=int)
    chance = rng.beta(4 * centre, 4 * (1 - centre), arcs.shape)
    return np.stack([rng.binomial(arcs, chance), arcs], axis=-1)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_and_random_agree_with_scipy(alternative: str) -> None:
    for sentences in (12, 40):
        differences = np.random.default_rng(1).normal(0.2, 1, sentences)
        expected = scipy_stats.permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            alternative=alternative,
            n_resamples=20_000,
            rng=0,
        )
        found = sign_flip(differences, alternative=alternative)
        assert found.value == pytest.approx(expected.statistic)
        assert found.p == pytest.approx(expected.pvalue, abs=1e-12 if sentences == 12 else 0.015)


def test_random_flips_come_near_the_exact_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(2).normal(0.3, 1, (16, 5))
    exact = sign_flip(differences).p
    monkeypatch.setattr(paired, "EXACT", 3)
    random = sign_flip(differences).p
    assert not np.array_equal(exact, random)
    assert random == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_p_is_uniform_under_the_null(alternative: str) -> None:
    differences = np.random.default_rng(3).standard_t(3, (40, 500))
    found = sign_flip(differences, draws=2000, correction="none", alternative=alternative)
    assert scipy_stats.kstest(found.p, "uniform").pvalue > 0.01


def test_p_of_ratios_is_uniform_under_the_null() -> None:
    found = sign_flip_scores(
        counts(60, 500, seed=4), counts(60, 500, seed=5), draws=2000, correction="none"
    )
    assert scipy_stats.kstest(found.p, "uniform").pvalue > 0.01


def test_a_real_difference_is_found_after_correction() -> None:
    found = sign_flip_scores(
        counts(100, 50, seed=6, centre=0.7), counts(100, 50, seed=7, centre=0.4)
    )
    assert np.all(found.p_adjusted < 0.05)


def test_a_family_of_null_heads_rarely_has_even_one_claim() -> None:
    differences = np.random.default_rng(8).normal(size=(50, 200, 20))
    p = sign_flip(differences, correction="none").p
    families = np.any(holm(p, axis=1) <= 0.05, axis=1)
    # 5 in 100 families are promised; binomial noise on 200 families is 1.5 points.
    assert 0.01 <= families.mean() <= 0.09
    assert np.any(p <= 0.05, axis=1).mean() > 0.5  # without the correction most families have one


def test_ratios_with_shared_counts_are_a_test_of_hit_differences() -> None:
    ours = counts(30, 4, seed=10)
    theirs = ours.copy()
    theirs[..., 0] = np.random.default_rng(11).binomial(ours[..., 1], 0.4)
    by_scores = sign_flip_scores(ours, theirs)
    by_hits = sign_flip(ours[..., 0] - theirs[..., 0])
    assert np.array_equal(by_scores.p, by_hits.p)
    assert by_scores.value == pytest.approx(by_hits.value * 30 / ours[..., 1].sum(axis=0))


def test_one_baseline_for_all_heads() -> None:
    ours, theirs = counts(30, 4, seed=12), counts(30, 1, seed=13)[:, 0]
    shared = sign_flip_scores(ours, theirs)
    repeated = sign_flip_scores(ours, np.repeat(theirs[:, None], 4, axis=1))
    assert np.array_equal(shared, repeated)


def test_bleu_by_trading_sentences() -> None:
    rng = np.random.default_rng(14)
    totals = np.array([12, 11, 10, 9]) + np.zeros((30, 4), dtype=int)
    lengths = np.full((30, 2), 12)
    good = np.concatenate([lengths, totals - rng.integers(0, 4, (30, 4)), totals], axis=1)
    poor = np.concatenate([lengths, totals - rng.integers(3, 8, (30, 4)), totals], axis=1)
    found = sign_flip_scores(good, poor, bleu)
    assert found.value == pytest.approx(bleu(good.sum(0).astype(float)) - bleu(poor.sum(0) * 1.0))
    assert found.p == 1 / 20_001
    assert sign_flip_scores(good, good[::-1], bleu).p > 0.9


def test_sentences_that_do_not_differ_do_not_matter() -> None:
    differences = np.array([0.5, 0.25, 1.0, 2.0, -0.25, 0.75])
    padded = np.concatenate([differences, np.zeros(50)])
    assert sign_flip(padded).p == sign_flip(differences).p == 6 / 64
    assert sign_flip(np.zeros(20)).p == 1


def test_heads_with_few_and_many_differences_together() -> None:
    rng = np.random.default_rng(15)
    together = np.zeros((40, 3))
    together[:8, 0] = rng.normal(1, 1, 8)
    together[5:14, 1] = rng.normal(1, 1, 9)
    together[:, 2] = rng.normal(0.3, 1, 40)
    alone = [float(sign_flip(together[:, head]).p) for head in range(3)]
    assert sign_flip(together).p.tolist() == alone
    assert alone[0] * 2**8 == pytest.approx(round(alone[0] * 2**8))


def test_ties_count_whatever_the_rounding() -> None:
    # 0.1 + 0.2 is not 0.3 in binary: the mirrored pattern must still count as equally far.
    assert sign_flip([0.1, 0.2, 0.3, 0.1, 0.2, 0.3]).p == 2 / 64
    balanced = sign_flip([0.1, 0.2, -0.3, 0.7, -0.7, 0.1, -0.1])
    assert balanced.p == 1


def test_two_sentences_are_enough_to_compute() -> None:
    assert sign_flip([1.0, 1.0], level=0.5).p == 0.5


def test_sign_flip_keeps_axes() -> None:
    differences = np.random.default_rng(16).normal(size=(20, 2, 3))
    found = sign_flip(differences)
    assert found.p.shape == found.p_adjusted.shape == found.value.shape == (2, 3)
    assert found.value == pytest.approx(differences.mean(axis=0))


def test_heads_without_a_value_stay_nan() -> None:
    ours, theirs = counts(30, 3, seed=17), counts(30, 3, seed=18)
    ours[:, 1] = 0
    found = sign_flip_scores(ours, theirs)
    assert np.isnan(found.p).tolist() == np.isnan(found.p_adjusted).tolist() == [False, True, False]


def test_too_few_sentences_are_refused_whatever_the_draws() -> None:
    differences = np.ones((12, 144))
    message = (
        r"two-sided paired test on 12 sentences gives no p below 2\^-11 = 0.000488, but Holm over "
        r"144 tests at level 0.05 asks for p <= 0.05/144 = 0.000347; use at least 13 sentences"
    )
    with pytest.raises(StatsError, match=message):
        sign_flip(differences, draws=10**9)
    assert np.all(sign_flip(np.ones((13, 144))).p_adjusted <= 0.05)
    assert np.all(sign_flip(differences, alternative="greater").p_adjusted <= 0.05)


def test_too_few_draws_are_refused_unless_all_is_exact() -> None:
    with pytest.raises(
        StatsError, match=r"10 draws give no p below 1/11 = 0.0909.*at least 19 draws"
    ):
        sign_flip(np.ones(17), draws=10)
    assert sign_flip(np.ones(16), draws=10).p == 2**-15


def test_wrong_settings_are_named() -> None:
    with pytest.raises(StatsError, match="no alternative 'up'"):
        sign_flip(np.ones(8), alternative="up")
    with pytest.raises(StatsError, match=r"seed is 0\.5"):
        sign_flip(np.ones(8), seed=0.5)
    with pytest.raises(StatsError, match="number of draws is -5"):
        sign_flip_scores(np.ones((8, 2)), np.ones((8, 2)), draws=-5)
    with pytest.raises(StatsError, match="A count is -1"):
        sign_flip_scores(np.ones((8, 2)), -np.ones((8, 2)))


# --- The exact sign-flip test of counts ---------------------------------------------------------


ALTERNATIVES = ("greater", "less", "two-sided")


def slow_greater(differences: list[int]) -> float:
    """The distribution of the sum under random signs, sentence by sentence, in fractions."""
    shares = {0: Fraction(1)}
    for size in differences:
        wider: dict[int, Fraction] = {}
        for total, share in shares.items():
            for turned in (total + size, total - size):
                wider[turned] = wider.get(turned, Fraction(0)) + share / 2
        shares = wider
    return float(sum(share for total, share in shares.items() if total >= sum(differences)))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_all_patterns_of_signs(alternative: str) -> None:
    differences = np.random.default_rng(1).integers(-3, 5, (12, 40))
    tried = sign_flip(differences, alternative=alternative, correction="none").p
    np.testing.assert_allclose(
        sign_flip_counts(differences, alternative=alternative), tried, atol=1e-14
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=40))
def test_the_closed_form_is_the_distribution(differences: list[int]) -> None:
    p = sign_flip_counts(differences, alternative="greater")
    assert p == pytest.approx(slow_greater(differences), abs=1e-13)


def test_many_sentences_and_small_p() -> None:
    differences = np.random.default_rng(2).integers(-2, 4, (300, 3))
    for column, p in enumerate(sign_flip_counts(differences, alternative="greater")):
        assert p == pytest.approx(slow_greater(differences[:, column].tolist()), abs=1e-13)


def test_a_p_is_never_smaller_than_the_sum_is_exact() -> None:
    assert sign_flip_counts(np.ones(200, int), alternative="greater") == SMALLEST
    assert sign_flip_counts(np.ones(10, int), alternative="greater") == pytest.approx(2.0**-10)


def test_nothing_differs() -> None:
    assert sign_flip_counts(np.zeros((5, 2)), alternative="greater").tolist() == [1.0, 1.0]


def test_heads_keep_their_axes_and_do_not_meet() -> None:
    differences = np.random.default_rng(3).integers(-2, 3, (30, 2, 3))
    together = sign_flip_counts(differences)
    assert together.shape == (2, 3)
    alone = [sign_flip_counts(differences[:, i, j]) for i in range(2) for j in range(3)]
    np.testing.assert_allclose(together.ravel(), alone, atol=1e-14)


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ([0.5, 1.0], "hold 0.5, which is no whole number; use sign_flip"),
        ([1], "hold one sentence, which says nothing about chance"),
        ([np.nan, 1.0], "NaN or infinite"),
    ],
)
def test_what_it_refuses(differences: list[float], message: str) -> None:
    with pytest.raises(StatsError, match=message):
        sign_flip_counts(differences)


def test_an_unknown_alternative() -> None:
    with pytest.raises(StatsError, match="There is no alternative 'more'"):
        sign_flip([1, 2], alternative="more")  # type: ignore[arg-type]
