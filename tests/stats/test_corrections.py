"""Tests of `stats/corrections.py`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from headcount.errors import StatsError
from headcount.stats import adjust, benjamini_hochberg, check_resolution, holm

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


# --- The smallest p that a test can give ----------------------------------------------------------


def test_the_sentence_for_too_few_draws() -> None:
    expected = (
        "1,000 draws give no p below 1/1001 = 0.000999, but Holm over 144 tests at level 0.01 asks "
        "for p <= 0.01/144 = 6.94e-05; use at least 14,399 draws."
    )
    with pytest.raises(StatsError, match=f"^{re.escape(expected)}$"):
        check_resolution(draws=1000, tests=144, level=0.01, method="holm")


def test_the_sentence_for_too_few_sentences() -> None:
    expected = (
        "A one-sided paired test on 4 sentences gives no p below 2^-4 = 0.0625, but one test at "
        "level 0.05 asks for p <= 0.05; use at least 5 sentences."
    )
    with pytest.raises(StatsError, match=f"^{re.escape(expected)}$"):
        check_resolution(sentences=4, tests=1, alternative="greater")


@pytest.mark.parametrize("level", [0.001, 0.01, 0.05, 0.1, 1 / 3, 0.07])
@pytest.mark.parametrize("tests", [1, 7, 48, 144, 5760])
def test_the_number_it_asks_for_is_the_smallest_that_passes(level: float, tests: int) -> None:
    for word, alternative in (
        ("draws", "two-sided"),
        ("sentences", "two-sided"),
        ("sentences", "less"),
    ):
        with pytest.raises(StatsError) as caught:
            check_resolution(**{word: 1}, tests=tests, level=level, alternative=alternative)
        found = re.search(r"at least ([\d,]+) ", str(caught.value))
        assert found is not None
        needed = int(found[1].replace(",", ""))
        smallest = check_resolution(
            **{word: needed}, tests=tests, level=level, alternative=alternative
        )
        assert smallest * tests <= level * (1 + 1e-8)
        with pytest.raises(StatsError):
            check_resolution(
                **{word: needed - 1}, tests=tests, level=level, alternative=alternative
            )


def test_it_returns_the_smallest_p() -> None:
    assert check_resolution(draws=19_999, tests=1) == 1 / 20_000
    assert check_resolution(sentences=10, tests=1) == 2**-9
    assert check_resolution(sentences=10, tests=1, alternative="less") == 2**-10
    assert check_resolution(draws=20_000, sentences=10, tests=1) == 2**-9
    assert check_resolution(draws=99, sentences=40, tests=1) == 1 / 100
    assert check_resolution(tests=10) == 0


def test_without_correction_one_test_is_one_test() -> None:
    assert check_resolution(draws=99, tests=144, method="none") == 1 / 100
    with pytest.raises(StatsError, match="Benjamini-Hochberg over 144 tests"):
        check_resolution(draws=99, tests=144, method="bh")


def test_wrong_settings_are_named() -> None:
    with pytest.raises(StatsError, match="number of tests is 0; give a whole number from 1 up"):
        check_resolution(draws=99, tests=0)
    with pytest.raises(StatsError, match="level is 5; give a number between 0 and 1"):
        check_resolution(draws=99, tests=1, level=5)
    with pytest.raises(StatsError, match="no correction 'x'"):
        check_resolution(draws=99, tests=1, method="x")
    with pytest.raises(StatsError, match="number of sentences is 0"):
        check_resolution(sentences=0, tests=1)
