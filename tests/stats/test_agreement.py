from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from headcount.errors import StatsError
from headcount.stats import agreement_matrix, rank_agreement, sentence_agreement

RNG = np.random.default_rng(0)
ONE = RNG.normal(size=72)
TWO = ONE + RNG.normal(size=72)


def mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def noisy(
    true_scores: np.ndarray, sentences: int, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """Sentence-level statistics whose mean is the true score of each head."""
    values = true_scores + noise * rng.normal(size=(sentences, len(true_scores)))
    return np.stack([values, np.ones_like(values)], axis=-1)


def test_the_interval_over_heads_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    r = 0.6
    truth = {
        "pearson": r,
        "spearman": 6 / np.pi * np.arcsin(r / 2),
        "kendall": 2 / np.pi * np.arcsin(r),
    }
    hits = dict.fromkeys(truth, 0)
    for seed in range(400):
        one, two = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], size=60).T
        for kind in truth:
            found = rank_agreement(one, two, kind, draws=400, seed=seed)
            hits[kind] += found.low <= truth[kind] <= found.high
    for kind in truth:
        assert 0.90 <= hits[kind] / 400 <= 0.98, kind


@pytest.mark.parametrize("kind", ["spearman", "kendall", "pearson"])
def test_the_interval_over_sentences_covers_these_heads(kind: str) -> None:
    rng = np.random.default_rng(2)
    one = rng.normal(size=30)
    two = 0.7 * one + 0.7 * rng.normal(size=30)
    scipy_kind = {"spearman": "spearmanr", "kendall": "kendalltau", "pearson": "pearsonr"}[kind]
    truth = getattr(scipy_stats, scipy_kind)(one, two)[0]
    covered = []
    for seed in range(150):
        a, b = noisy(one, 60, 1.0, rng), noisy(two, 60, 1.0, rng)
        found = sentence_agreement(a, b, mean, kind, same_sentences=False, draws=200, seed=seed)
        covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= 0.9


def test_perfect_and_opposite_agreement() -> None:
    for kind in ("spearman", "kendall"):
        assert rank_agreement(ONE, np.exp(ONE), kind)[:3] == pytest.approx((1, 1, 1))
        assert rank_agreement(ONE, -(ONE**3), kind)[:3] == pytest.approx((-1, -1, -1))
    assert rank_agreement(ONE, 3 * ONE + 1, "pearson")[:3] == pytest.approx((1, 1, 1))
    assert rank_agreement(ONE, np.exp(3 * ONE), "pearson").value < 0.9


def test_small_scores_far_from_zero_are_not_constant() -> None:
    tiny = 1.0 + 1e-9 * ONE
    assert rank_agreement(ONE, tiny, "pearson").value == pytest.approx(1, abs=1e-5)
    assert rank_agreement(1e-30 * ONE, TWO, "pearson").value == pytest.approx(
        rank_agreement(ONE, TWO, "pearson").value
    )


def test_a_constant_score_gives_nan_and_says_why() -> None:
    found = rank_agreement(ONE, np.ones(72))
    assert np.isnan([found.value, found.low, found.high]).all()
    assert found.note == "second score is the same for every head"
    assert rank_agreement(np.zeros(72), ONE).note == "first score is the same for every head"
    assert rank_agreement(ONE[:2], TWO[:2]).note == "2 heads are too few"
    assert rank_agreement(ONE, TWO).note == ""


def test_wrong_input_is_named() -> None:
    with pytest.raises(
        StatsError, match=r"shapes \(72,\) and \(71,\); give two vectors of one length"
    ):
        rank_agreement(ONE, TWO[1:])
    with pytest.raises(StatsError, match=r"shapes \(8, 9\) and \(8, 9\)"):
        rank_agreement(ONE.reshape(8, 9), TWO.reshape(8, 9))
    with pytest.raises(StatsError, match="first scores hold 1 of 72 numbers that are NaN"):
        rank_agreement(np.where(ONE.max() == ONE, np.nan, ONE), TWO)
    with pytest.raises(StatsError, match="no kind of agreement 'tau'; choose one of spearman"):
        rank_agreement(ONE, TWO, "tau")
    with pytest.raises(StatsError, match="seed is '1'"):
        rank_agreement(ONE, np.ones(72), seed="1")
    with pytest.raises(StatsError, match="confidence is 2"):
        rank_agreement(ONE, TWO, confidence=2)


def test_sentences_shared_or_not() -> None:
    rng = np.random.default_rng(3)
    one, two = noisy(ONE, 40, 1, rng), noisy(TWO, 40, 1, rng)
    shared = sentence_agreement(one, two, mean, draws=300)
    apart = sentence_agreement(one, two, mean, draws=300, same_sentences=False)
    assert shared.value == apart.value
    assert shared != apart
    other = sentence_agreement(one, two[:30], mean, draws=300, same_sentences=False)
    assert other.heads == 72
    with pytest.raises(StatsError, match=r"40 and 30 sentences; .* or say same_sentences=False"):
        sentence_agreement(one, two[:30], mean)


def test_each_side_may_have_its_own_statistic() -> None:
    rng = np.random.default_rng(4)
    one, two = noisy(ONE, 40, 1, rng), noisy(TWO, 40, 1, rng)
    plain = sentence_agreement(one, two, mean, draws=200)
    turned = sentence_agreement(one, two, mean, second_statistic=lambda s: -mean(s), draws=200)
    assert turned.value == pytest.approx(-plain.value)
    assert (turned.low, turned.high) == pytest.approx((-plain.high, -plain.low))


def test_sentence_agreement_names_what_is_wrong() -> None:
    with pytest.raises(StatsError, match=r"shape \(9, 2\); give \[sentence, head, statistic\]"):
        sentence_agreement(np.ones((9, 2)), np.ones((9, 2)))
    empty = np.ones((9, 4, 2))
    empty[:, 1] = 0
    with pytest.raises(StatsError, match="first scores hold 1 of 4 numbers that are NaN"):
        sentence_agreement(empty, empty)
    same = sentence_agreement(np.ones((9, 4, 2)), np.ones((9, 4, 2)))
    assert same.note == "first score is the same for every head"


def test_the_matrix_has_a_row_for_each_pair_and_kind() -> None:
    frame = agreement_matrix({"gradient": ONE, "ablation": TWO, "confidence": -ONE}, draws=200)
    assert list(frame.columns) == [
        "first", "second", "kind", "value", "low", "high", "heads", "note",
    ]  # fmt: skip
    assert len(frame) == 9
    row = frame[(frame["first"] == "gradient") & (frame["second"] == "ablation")].iloc[0]
    alone = rank_agreement(ONE, TWO, row["kind"], draws=200)
    assert (row["value"], row["low"], row["high"], row["heads"]) == alone[:4]


def test_the_matrix_takes_a_frame_with_holes() -> None:
    holes = ONE.copy()
    holes[:10] = np.nan
    given = pd.DataFrame(
        {"a": holes, "b": TWO, "c": 1.0, "d": pd.array([None] * 72, dtype="Float64")}
    )
    frame = agreement_matrix(given, ["kendall"], draws=200).set_index(["first", "second"])
    assert frame.loc[("a", "b"), "heads"] == 62
    expected = scipy_stats.kendalltau(ONE[10:], TWO[10:])[0]
    assert frame.loc[("a", "b"), "value"] == pytest.approx(expected)
    assert frame.loc[("b", "c"), "note"] == "c is the same for every head"
    assert np.isnan(frame.loc[("b", "c"), "value"])
    assert frame.loc[("a", "d"), "note"] == "0 heads are too few"


def test_the_matrix_wants_the_same_heads() -> None:
    with pytest.raises(StatsError, match="score a has 3 heads and b has 2; give every score"):
        agreement_matrix({"a": [1, 2, 3], "b": [1, 2]})


def test_a_lone_score_agrees_with_nothing() -> None:
    frame = agreement_matrix({"a": ONE})
    assert len(frame) == 0
    assert "low" in frame.columns
