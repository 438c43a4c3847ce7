"""Agreement of rankings: coverage of its intervals, what has none, and tables of pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.errors import StatsError
from headcount.rooms.agreement.agreement import rank_difference
from headcount.rooms.agreement.ranks import rank_agreement

RNG = np.random.default_rng(0)
ONE = RNG.normal(size=72)
TWO = ONE + RNG.normal(size=72)


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
        rank_agreement(ONE, TWO, seed="1")
    with pytest.raises(StatsError, match="confidence is 2"):
        rank_agreement(ONE, TWO, confidence=2)


STRATA = np.repeat(np.arange(12), 8)


def test_members_that_always_rank_first_have_a_delta_of_one() -> None:
    members = np.arange(96) % 8 == 0
    found = rank_difference(members * 10.0 + np.arange(96) % 7, members, STRATA)
    assert found.value == found.low == found.high == 1
    assert (found.members, found.others, found.strata) == (12, 84, 12)
    assert found.p < 0.001


def test_layers_that_differ_do_not_make_their_heads_differ() -> None:
    # Members sit in the late layers, which score higher as a whole: a plain rank test would jump.
    members = (STRATA >= 9) & (np.arange(96) % 8 < 5)
    scores = STRATA * 100.0 + np.random.default_rng(0).permutation(96) / 96
    assert rank_difference(scores, members, STRATA).p > 0.05


def test_the_test_of_ranks_keeps_its_level_and_its_interval_covers() -> None:
    random = np.random.default_rng(7)
    p, covered = [], 0
    for seed in range(300):
        members = random.random(96) < 0.25
        layers = random.normal(size=12)[STRATA]
        p.append(rank_difference(random.normal(size=96) + layers, members, STRATA, draws=400).p)
        moved = rank_difference(
            random.normal(size=96) + layers + 0.7416 * members, members, STRATA,
            draws=400, seed=seed,
        )  # fmt: skip
        covered += moved.low <= 0.4 <= moved.high  # P(above) = 0.7 for a shift of 0.7416 sd
    assert np.mean(np.array(p) <= 0.05) < 0.085
    assert 0.91 < covered / 300 <= 0.99


def test_heads_alone_in_their_layer_say_nothing() -> None:
    found = rank_difference([1, 2, np.nan], [1, 0, 0], "abb")
    assert math.isnan(found.p)
    assert found.members == 0


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(StatsError, match="3 scores, 2 marks"):
        rank_difference([1, 2, 3], [1, 0], "aa")
