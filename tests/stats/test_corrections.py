from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from headcount.errors import StatsError
from headcount.stats import adjust, benjamini_hochberg, holm

P = np.random.default_rng(0).beta(0.4, 2, (5, 40))


def test_benjamini_hochberg_is_that_of_scipy() -> None:
    assert benjamini_hochberg(P[0]) == pytest.approx(false_discovery_control(P[0]))
    assert benjamini_hochberg(P).ravel() == pytest.approx(false_discovery_control(P.ravel()))
    assert benjamini_hochberg(P, axis=0) == pytest.approx(false_discovery_control(P, axis=0))
    assert benjamini_hochberg(P, axis=1) == pytest.approx(false_discovery_control(P, axis=1))


def test_holm_of_a_worked_example() -> None:
    # 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1 raised to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_along_an_axis_each_line_is_its_own_family() -> None:
    lines = np.stack([holm(line) for line in P])
    assert np.array_equal(holm(P, axis=1), lines)
    assert np.array_equal(holm(P.T, axis=0), lines.T)
    assert not np.array_equal(holm(P), lines)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_nan_stays_and_does_not_count(correct: object) -> None:
    holes = P[0].copy()
    holes[[3, 0, 17]] = np.nan
    known = ~np.isnan(holes)
    found = correct(holes)
    assert np.array_equal(np.isnan(found), ~known)
    assert np.array_equal(found[known], correct(holes[known]))
    assert np.all(np.isnan(correct([np.nan, np.nan])))


def test_nan_along_an_axis() -> None:
    holes = P.copy()
    holes[1, 5:] = np.nan
    assert holm(holes, axis=1)[1, :5] == pytest.approx(holm(P[1, :5]))
    assert benjamini_hochberg(holes, axis=1)[1, :5] == pytest.approx(benjamini_hochberg(P[1, :5]))


def test_one_none_and_a_single_number() -> None:
    assert holm([]).shape == benjamini_hochberg([]).shape == (0,)
    assert holm(0.03) == benjamini_hochberg(0.03) == 0.03


def test_adjust_by_name() -> None:
    assert np.array_equal(adjust(P), holm(P))
    assert np.array_equal(adjust(P, "bh", axis=1), benjamini_hochberg(P, axis=1))
    assert np.array_equal(adjust(P, "none"), P)
    with pytest.raises(
        StatsError, match="no correction 'bonferroni'; choose one of holm, bh, none"
    ):
        adjust(P, "bonferroni")


def test_the_input_is_left_alone() -> None:
    given = P[0].copy()
    adjust(given, "none")[0] = 9
    holm(given)
    assert np.array_equal(given, P[0])


def test_what_is_no_p_value() -> None:
    for wrong in ([0.5, 1.1], [-0.1, 0.5]):
        with pytest.raises(StatsError, match="p value lies outside 0 to 1"):
            holm(wrong)
