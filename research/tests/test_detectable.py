"""The smallest difference that a comparison could have found."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.errors import StatsError
from headcount.stats import mcnemar
from research.disabling.detectable import minimum_detectable_difference


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
