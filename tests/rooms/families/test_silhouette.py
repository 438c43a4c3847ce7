"""Silhouettes against scikit-learn's, and against labels shuffled."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from headcount.errors import StatsError
from headcount.rooms.families.grouping import mean_silhouette, silhouette_test


def distances(places: np.ndarray) -> np.ndarray:
    return np.linalg.norm(places[:, None] - places[None], axis=-1)


def test_silhouettes_are_those_of_scikit_learn() -> None:
    noise = np.random.default_rng(2)
    apart, labels = distances(noise.normal(size=(20, 3))), noise.integers(0, 4, 20)
    assert mean_silhouette(apart, labels) == pytest.approx(
        silhouette_score(apart, labels, metric="precomputed")
    )


def test_shuffled_layers_answer_for_chance() -> None:
    noise = np.random.default_rng(3)
    apart, labels = distances(noise.normal(size=(24, 3))), np.arange(24) % 4
    value, low, high, p = silhouette_test(apart, labels)
    assert low < value < high
    assert 0.05 < p < 0.95
    with pytest.raises(StatsError, match="needs at least two labels, one of them shared"):
        silhouette_test(apart, np.zeros(24))
    with pytest.raises(StatsError, match=r"shape \(24, 24\) and there are 9 labels"):
        silhouette_test(apart, labels[:9])
