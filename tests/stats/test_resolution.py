from __future__ import annotations

import re

import pytest

from headcount.errors import StatsError
from headcount.stats import check_resolution


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
