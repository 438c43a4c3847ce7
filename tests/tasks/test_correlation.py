from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.tasks.regression import PEARSON, SPEARMAN, pair_sums

NUMBERS = st.integers(-5, 5).map(lambda number: number / 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=15))
@pytest.mark.filterwarnings("ignore")
def test_correlations_are_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    expected = scipy.stats.pearsonr(x, y)[0], scipy.stats.spearmanr(x, y)[0]
    sums, rows = pair_sums(x, y), np.stack([x, y], axis=1)
    for metric, statistics, judged in ((PEARSON, sums, expected[0]), (SPEARMAN, rows, expected[1])):
        assert metric.value(statistics) == pytest.approx(judged, abs=1e-9, nan_ok=True)
        if not np.isnan(judged):
            assert metric.scores(statistics).mean() == pytest.approx(judged, abs=1e-9)


def test_a_resample_is_the_correlation_of_the_examples_drawn() -> None:
    x, y = np.array([1.0, 2, 3, 4, 2.5]), np.array([2.0, 1, 4, 3, 9])
    drawn = np.array([0, 0, 2, 3, 4])
    weights = np.bincount(drawn, minlength=5)[None].astype(float)
    assert PEARSON.resample(pair_sums(x, y), weights) == pytest.approx(
        scipy.stats.pearsonr(x[drawn], y[drawn])[0], abs=1e-9
    )
    assert SPEARMAN.resample(np.stack([x, y], axis=1), weights) == pytest.approx(
        scipy.stats.spearmanr(x[drawn], y[drawn])[0], abs=1e-9
    )


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_constant_predictions_have_no_correlation_and_a_reason(noise: float) -> None:
    x = 0.5 + noise * np.arange(4)
    rows, sums = np.stack([x, np.arange(4.0)], axis=1), pair_sums(x, np.arange(4.0))
    for metric, statistics in ((SPEARMAN, rows), (PEARSON, sums)):
        assert np.isnan(metric.value(statistics))
        assert metric.reason(statistics) == (
            "all 4 predictions are 0.5, and a constant has no order"
        )
    assert SPEARMAN.reason(rows[:, ::-1]) == (
        "all 4 gold scores are 0.5, and a constant has no order"
    )
    assert SPEARMAN.reason(rows[:1]) == "a correlation needs two examples or more"
