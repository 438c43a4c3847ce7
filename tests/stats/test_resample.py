from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from headcount.stats import sample as resample
from headcount.stats.sample import all_signs, random_signs, resample_weights


def joined(chunks: object) -> np.ndarray:
    return np.concatenate(list(chunks))


@pytest.mark.parametrize("source", [resample_weights, random_signs])
@pytest.mark.parametrize("sentences", [7, 130])
def test_chunks_do_not_show(source: object, sentences: int) -> None:
    whole = joined(source(sentences, 301, 5))
    cut = list(source(sentences, 301, 5, columns=2**22 // 10))
    assert len(cut) == 31
    assert np.array_equal(whole, joined(cut))


def test_memory_stays_bounded() -> None:
    for sentences in (2, 1000, 10**5, 10**7):
        for columns in (1, 10**4, 10**6):
            rows = max(resample._chunks(sentences, 20_000, columns))
            assert rows == 1 or rows * max(sentences, columns) <= 2**24
    assert sum(resample._chunks(1000, 20_001, 5)) == 20_001


def test_a_chunk_is_large_enough_for_a_matrix_product() -> None:
    assert max(resample._chunks(1000, 20_000, 288)) >= 200
    assert max(resample._chunks(100_000, 20_000, 288)) >= 64


def test_weights_are_a_draw_with_replacement() -> None:
    weights = joined(resample_weights(10, 20_000, 3))
    assert np.all(weights.sum(axis=1) == 10)
    # Each weight is binomial(10, 1/10): its mean is 1, its variance 0.9, and pairs vary together
    # by -1/10.
    assert weights.mean(axis=0) == pytest.approx(np.ones(10), abs=0.03)
    covariance = np.cov(weights.T)
    assert np.diag(covariance) == pytest.approx(np.full(10, 0.9), abs=0.05)
    assert covariance[np.triu_indices(10, 1)] == pytest.approx(np.full(45, -0.1), abs=0.03)


def test_random_signs_are_fair_and_independent() -> None:
    signs = joined(random_signs(70, 20_000, 3))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(20_000)
    together = signs.T @ signs / len(signs) - np.eye(70)
    assert np.abs(together).max() < 5.5 / np.sqrt(20_000)
    assert scipy_stats.kstest(signs.sum(axis=1) / np.sqrt(70), "norm").statistic < 0.06


def test_all_signs_are_every_pattern_once() -> None:
    patterns = joined(all_signs(10, columns=2**18))
    assert patterns.shape == (1024, 10)
    assert len(np.unique(patterns, axis=0)) == 1024
    assert joined(all_signs(0)).shape == (1, 0)
