from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from headcount.stats import bootstrap_difference, bootstrap_interval
from headcount.stats.sample import resample_weights
from headcount.tasks.comparison import Metric, redraw_difference, redraw_interval
from headcount.tasks.regression import SPEARMAN

#: A metric that a sum does give, computed the other way.
MEAN = Metric(
    "mean",
    ("number",),
    None,
    each=lambda rows: rows[:, 0],
    drawn=lambda rows, weights: weights @ rows[:, 0] / weights.sum(axis=1),
)


def mean_of_sums(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def test_it_is_the_bootstrap_of_statistics_where_both_can_be_had() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(1, 1, (50, 1)), rng.normal(0.8, 1, (50, 1))
    one = np.ones((50, 1))
    found = redraw_interval(MEAN, ours, 400, 0.9, 5)
    sums = np.hstack([ours, one]), np.hstack([theirs, one])
    usual = bootstrap_interval(sums[0], mean_of_sums, draws=400, confidence=0.9, seed=5)
    assert found == pytest.approx(usual)
    difference = redraw_difference(
        *(MEAN, [ours], theirs),
        **{"draws": 400, "confidence": 0.9, "correction": "holm", "level": 0.05, "seed": 5},  # type: ignore[arg-type]
    )
    expected = bootstrap_difference(*sums, mean_of_sums, draws=400, confidence=0.9, seed=5)
    assert [column[0] for column in difference] == pytest.approx(list(expected))


def test_the_interval_holds_the_quantiles_of_spearman_on_resamples() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(25, 2)) + rng.normal(size=(25, 1))
    drawn = [
        spearmanr(*np.repeat(rows, one.astype(int), axis=0).T)[0]
        for weights in resample_weights(25, 200, 7)
        for one in weights
    ]
    found = redraw_interval(SPEARMAN, rows, 200, 0.95, 7)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
