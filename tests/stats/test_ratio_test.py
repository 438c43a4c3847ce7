"""The one-sided test of a ratio: against scipy, at ties, at its floor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from headcount import stats


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
