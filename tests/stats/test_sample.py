"""Tests of `stats/sample.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from scipy import stats as scipy_stats

from headcount import stats
from headcount.errors import StatsError
from headcount.stats import bleu, ratio
from headcount.stats import sample as resample
from headcount.stats.sample import (
    all_signs,
    random_signs,
    read_finite,
    read_pair,
    read_statistics,
    resample_weights,
)

FOUR = np.array([[1.0, 2.0]] * 4)
PER_SENTENCE: list[Callable[[object], object]] = [
    stats.bootstrap_interval,
    lambda rows: stats.bootstrap_difference(rows, rows),
    stats.sign_flip,
    lambda rows: stats.sign_flip_scores(rows, rows),
    lambda rows: stats.mcnemar(rows, rows),
]


@pytest.mark.parametrize("call", PER_SENTENCE)
def test_no_sentences(call: Callable[[object], object]) -> None:
    with pytest.raises(StatsError, match="hold no sentences; give one row a sentence, at least 2"):
        call(np.zeros((0, 2)))


@pytest.mark.parametrize("call", PER_SENTENCE)
def test_one_sentence(call: Callable[[object], object]) -> None:
    with pytest.raises(StatsError, match="hold one sentence, which says nothing about chance"):
        call(np.ones((1, 2)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("call", PER_SENTENCE)
def test_nan_and_infinity(call: Callable[[object], object], bad: float) -> None:
    rows = FOUR.copy()
    rows[2, 0] = bad
    with pytest.raises(StatsError, match="hold 1 of 8 numbers that are NaN or infinite"):
        call(rows)


PAIRED: list[Callable[[object, object], object]] = [
    stats.bootstrap_difference,
    stats.sign_flip_scores,
    stats.mcnemar,
]


@pytest.mark.parametrize("call", PAIRED)
def test_sentences_that_do_not_match(call: Callable[[object, object], object]) -> None:
    with pytest.raises(StatsError, match="two systems have 4 and 3 sentences; a paired test needs"):
        call(np.ones((4, 2)), np.ones((3, 2)))


@pytest.mark.parametrize("call", PAIRED)
def test_heads_that_do_not_match(call: Callable[[object, object], object]) -> None:
    with pytest.raises(StatsError, match=r"shapes \(4, 3, 2\) and \(4, 5, 2\); give the baseline"):
        call(np.ones((4, 3, 2)), np.ones((4, 5, 2)))


def test_one_baseline_serves_all_heads() -> None:
    ours, theirs = read_pair(np.ones((4, 3, 5, 2)), np.ones((4, 2)))
    assert (ours.shape, theirs.shape) == ((4, 3, 5, 2), (4, 1, 1, 2))
    ours, theirs = read_pair(np.ones((4, 3)), np.ones(4), last_axis=False)
    assert (ours.shape, theirs.shape) == ((4, 3), (4, 1))


def test_statistics_that_do_not_match() -> None:
    with pytest.raises(StatsError, match=r"shapes \(4, 3, 2\) and \(4, 3\)"):
        read_pair(np.ones((4, 3, 2)), np.ones((4, 3)))


def test_statistics_need_their_axis() -> None:
    with pytest.raises(StatsError, match=r"shape \(4,\); give \[sentence, statistic\]"):
        read_statistics(np.ones(4))


@pytest.mark.parametrize("call", PAIRED)
def test_no_heads(call: Callable[[object, object], object]) -> None:
    with pytest.raises(StatsError, match=r"shape \(9, 0, 2\): there are no heads to look at"):
        call(np.ones((9, 0, 2)), np.ones((9, 0, 2)))


def test_what_is_no_number() -> None:
    with pytest.raises(StatsError, match="The scores cannot be read as an array of numbers"):
        read_finite(["a"], "scores")
    with pytest.raises(StatsError, match="The scores cannot be read as an array of numbers"):
        read_finite([[1, 2], [3]], "scores")


# --- Resamples and signs --------------------------------------------------------------------------


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


# --- Scores of sums -------------------------------------------------------------------------------


PAIRS = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("a dog", "the dog barked"),
    ("there is no such thing here at all", "there is no such thing there at all"),
    ("the small cat sat down", "the small cat sat down on the mat"),  # too short
    ("", "it"),
    ("yes yes", "no"),
    ("one two three four five", "five six one seven"),  # words match, longer runs do not
    ("alpha beta gamma delta", "nothing of this kind"),  # nothing matches
]
OUTPUTS, REFERENCES = ([pair[side] for pair in PAIRS] for side in (0, 1))


def sufficient(outputs: list[str], references: list[str]) -> np.ndarray:
    """sacreBLEU's own sufficient statistics: lengths, 4 matches, 4 totals per sentence."""
    scorer = BLEU()
    return np.array(scorer._extract_corpus_statistics(outputs, [references]), dtype=float)


def test_bleu_is_that_of_sacrebleu() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    assert bleu(rows.sum(axis=0)) == pytest.approx(
        BLEU().corpus_score(OUTPUTS, [REFERENCES]).score, abs=1e-9
    )


def test_bleu_of_every_sentence_smoothed_short_and_empty() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    expected = [
        BLEU(effective_order=False).corpus_score([output], [[reference]]).score
        for output, reference in zip(OUTPUTS, REFERENCES, strict=True)
    ]
    assert bleu(rows) == pytest.approx(expected, abs=1e-9)
    assert 0 < expected[0] < 100
    assert 0 < expected[6] < 20
    assert expected[4] == expected[7] == 0


def test_bleu_keeps_leading_axes() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    assert bleu(np.stack([rows, rows])).shape == (2, 8)


def test_wrong_numbers_of_statistics_are_named() -> None:
    with pytest.raises(
        StatsError, match="ratio is made of 2 statistics, hits and counts, not of 3"
    ):
        ratio(np.ones((4, 3)))
    with pytest.raises(StatsError, match="BLEU is made of 10 statistics, not of 9"):
        bleu(np.ones((4, 9)))


def test_rounding_is_no_negative_count() -> None:
    tiny = np.array([[1.0, 3.0], [0.0, -1e-17]])
    assert ratio(tiny) == pytest.approx([1 / 3, np.nan], nan_ok=True)
    with pytest.raises(StatsError, match="A count is -1"):
        ratio(np.array([[1.0, 3.0], [0.0, -1.0]]))
