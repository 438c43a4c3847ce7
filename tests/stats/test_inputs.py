from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headcount import stats
from headcount.errors import StatsError
from headcount.stats.sample import read_finite, read_pair, read_statistics

FOUR = np.array([[1.0, 2.0]] * 4)
PER_SENTENCE: list[Callable[[object], object]] = [
    stats.bootstrap_interval,
    lambda rows: stats.bootstrap_difference(rows, rows),
    stats.sign_flip,
    lambda rows: stats.sign_flip_scores(rows, rows),
    lambda rows: stats.mcnemar(rows, rows),
    lambda rows: stats.sentence_agreement(np.asarray(rows)[:, None], np.asarray(rows)[:, None]),
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
