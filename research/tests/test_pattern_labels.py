"""Kappa and F1 of tables of labels, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headcount import stats
from headcount.errors import StatsError
from research.patterns.labels import crossed, f1_of, kappa, macro_f1

TRUE = ["a", "a", "b", "c", "b", "a"]
TOLD = ["a", "b", "b", "c", "c", "a"]


def test_kappa_and_f1_by_hand() -> None:
    counts = crossed(TRUE, TOLD, ["a", "b", "c"], range(6))
    summed = counts.sum(0)
    agreed, chance = 4 / 6, (3 * 2 + 2 * 2 + 1 * 2) / 36
    assert kappa(summed) == pytest.approx((agreed - chance) / (1 - chance))
    assert [f1_of(k)(summed) for k in range(3)] == pytest.approx([4 / 5, 1 / 2, 2 / 3])
    assert macro_f1(summed) == pytest.approx(np.mean([4 / 5, 1 / 2, 2 / 3]))


def test_a_label_that_never_occurs_has_no_f1() -> None:
    counts = crossed(["a"], ["a"], ["a", "b"], [0]).sum(0)
    assert np.isnan(f1_of(1)(counts))
    assert macro_f1(counts) == 1


def test_units_are_resampled_whole() -> None:
    counts = crossed(TRUE, TOLD, ["a", "b", "c"], [0, 0, 1, 1, 2, 2])
    assert counts.shape == (3, 9)
    assert counts.sum() == 6
    value, low, high = stats.bootstrap_interval(counts, kappa, draws=200)
    assert low <= value <= high


def test_unknown_labels_and_uneven_lists_are_refused() -> None:
    with pytest.raises(StatsError, match="'d' is no label; there are a, b"):
        crossed(["d"], ["a"], ["a", "b"], [0])
    with pytest.raises(StatsError, match="There are 2 first labels, 1 second ones and 1 units"):
        crossed(["a", "a"], ["a"], ["a"], [0])
