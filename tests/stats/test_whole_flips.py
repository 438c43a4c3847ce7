"""The exact sign-flip test of counts: against every pattern of signs, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import StatsError
from headcount.stats import sign_flip
from headcount.stats.paired import SMALLEST, sign_flip_counts

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
        sign_flip_counts([1, 2], alternative="more")  # type: ignore[arg-type]
