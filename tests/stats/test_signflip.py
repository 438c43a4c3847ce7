from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from headcount.errors import StatsError
from headcount.stats import bleu, holm, sign_flip, sign_flip_scores
from headcount.stats import paired as signflip_module


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
    monkeypatch.setattr(signflip_module, "EXACT", 3)
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


def test_axes_are_kept() -> None:
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
