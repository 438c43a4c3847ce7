from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.errors import StatsError
from headcount.stats import mcnemar, minimum_detectable_difference, sign_flip


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_it_is_the_binomial_test_of_the_disagreements(alternative: str) -> None:
    rng = np.random.default_rng(0)
    baseline = rng.random(200) < 0.8
    correct = np.stack([rng.random(200) < share for share in np.linspace(0.5, 0.95, 30)], axis=1)
    found = mcnemar(correct, baseline, alternative=alternative)
    for head in range(30):
        wins = int(np.sum(correct[:, head] & ~baseline))
        losses = int(np.sum(~correct[:, head] & baseline))
        expected = binomtest(wins, wins + losses, alternative=alternative).pvalue
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


@pytest.mark.parametrize(("examples", "discordant"), [(300, 0.15), (1000, 0.3)])
def test_the_smallest_difference_is_found_with_the_power_it_says(
    examples: int, discordant: float
) -> None:
    difference = float(minimum_detectable_difference(examples, discordant))
    rng = np.random.default_rng(3)
    kind = rng.random((examples, 2000))
    wins = kind < (discordant + difference) / 2
    losses = kind > 1 - (discordant - difference) / 2
    found = mcnemar(wins, losses, correction="none")
    power = np.mean(found.p <= 0.05)
    # The exact test is a little more careful than the normal approximation.
    assert 0.72 <= power <= 0.83


def test_what_moves_the_smallest_difference() -> None:
    base = minimum_detectable_difference(277, 0.1)
    assert minimum_detectable_difference(1000, 0.1) < base
    assert minimum_detectable_difference(277, 0.2) > base
    assert minimum_detectable_difference(277, 0.1, tests=144) > base
    assert minimum_detectable_difference(277, 0.1, power=0.95) > base
    assert minimum_detectable_difference(277, [0.1, 0.2]).shape == (2,)


def test_a_difference_larger_than_the_disagreement_is_none() -> None:
    assert np.isnan(minimum_detectable_difference(100, 0.01))
    assert np.isnan(minimum_detectable_difference(3, 0.5, tests=10_000))
    assert minimum_detectable_difference(100, 0.0) == 0


def test_wrong_settings_are_named() -> None:
    with pytest.raises(StatsError, match="share of discordant examples lies outside 0 to 1"):
        minimum_detectable_difference(100, 1.5)
    with pytest.raises(StatsError, match="number of examples is 1; give a whole number from 2 up"):
        minimum_detectable_difference(1, 0.5)
    with pytest.raises(StatsError, match="power is 80; give a number between 0 and 1"):
        minimum_detectable_difference(100, 0.5, power=80)
