from __future__ import annotations

import numpy as np
import pytest

from headcount.stats import bootstrap_interval, ratio
from headcount.tasks.classification import ACCURACY
from headcount.tasks.regression import SPEARMAN
from headcount.tasks.task import LOSS, Outcome


def losses(examples: int = 30, worse: float = 0.0) -> Outcome:
    tokens = np.random.default_rng(1).integers(3, 9, examples)
    loss = tokens * (2 + worse + np.random.default_rng(2).normal(size=examples) / 5)
    return Outcome(LOSS, np.stack([loss, tokens], axis=1))


def test_what_it_shows_follows_from_its_statistics() -> None:
    outcome = losses()
    loss, tokens = outcome.statistics.sum(axis=0)
    assert outcome.value == pytest.approx(loss / tokens)
    assert outcome.scores == pytest.approx(outcome.statistics[:, 0] / outcome.statistics[:, 1])
    assert (outcome.name, outcome.higher_is_better, len(outcome)) == ("loss", False, 30)
    assert outcome.statistic is ratio
    assert outcome.signature is None
    assert repr(outcome) == f"Outcome(loss {outcome.value:.4g} over 30 examples)"


def test_the_interval_is_the_bootstraps() -> None:
    outcome = losses()
    found = outcome.interval(draws=500, seed=3)
    assert found == bootstrap_interval(outcome.statistics, ratio, draws=500, seed=3)
    assert found.low < found.value < found.high


def test_a_rank_correlation_has_an_interval_too() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=40)
    outcome = Outcome(SPEARMAN, np.stack([gold + rng.normal(size=40), gold], axis=1))
    found = outcome.interval(draws=500)
    assert outcome.statistic is None
    assert found.value == outcome.value
    assert -1 < found.low < found.value < found.high < 1
    wider = outcome.interval(draws=500, confidence=0.99)
    assert wider.low < found.low


def test_weights_of_one_give_the_value() -> None:
    outcome = losses()
    assert outcome.resample(np.ones((1, 30)))[0] == pytest.approx(outcome.value)


def test_against_another_gives_the_difference_with_its_uncertainty() -> None:
    found = losses(worse=0.1).against(losses(), draws=500)
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1)
    assert found.test == "sign-flip"
    assert found.p < 0.01


def test_an_outcome_against_itself_is_nothing() -> None:
    rng = np.random.default_rng(0)
    right = Outcome(ACCURACY, np.stack([rng.integers(0, 2, 20), np.ones(20)], axis=1))
    found = right.against(right, draws=500)
    assert (found.value, found.low, found.high, found.p, found.test) == (0, 0, 0, 1, "mcnemar")
