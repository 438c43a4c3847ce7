from __future__ import annotations

import numpy as np
import pytest

from headcount.errors import StatsError, UsageError
from headcount.stats import bootstrap_difference, holm, mcnemar, sign_flip_scores
from headcount.tasks.classification import ACCURACY, MATTHEWS, class_counts
from headcount.tasks.comparison import Metric, compare_outcomes
from headcount.tasks.regression import SPEARMAN
from headcount.tasks.task import LOSS, Outcome
from headcount.tasks.translation import bleu_metric


def several(metric: Metric, make: object, systems: int = 3) -> list[Outcome]:
    return [Outcome(metric, np.asarray(make(), dtype=float)) for _ in range(systems)]  # type: ignore[operator]


def test_accuracies_are_compared_by_mcnemar() -> None:
    rng = np.random.default_rng(0)
    made = several(ACCURACY, lambda: np.stack([rng.integers(0, 2, 60), np.ones(60)], axis=1), 4)
    found = compare_outcomes(made[:3], made[3], draws=500)
    for place in range(3):
        alone = mcnemar(made[place].scores, made[3].scores)
        assert found.p[place] == alone.p
        assert found.value[place] == pytest.approx(made[place].value - made[3].value)
    assert found.p_adjusted == pytest.approx(holm(found.p))
    assert found.test == "mcnemar"


def test_losses_are_compared_by_flipping_signs() -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(3, 9, 50)
    made = several(LOSS, lambda: np.stack([tokens * rng.normal(2, 1, 50), tokens], axis=1), 3)
    found = compare_outcomes(made[:2], made[2], draws=500, seed=4)
    for place in range(2):
        alone = sign_flip_scores(made[place].statistics, made[2].statistics, draws=500, seed=4)
        assert found.p[place] == alone.p
        assert found.value[place] == pytest.approx(alone.value)
    assert np.all((found.low < found.value) & (found.value < found.high))


def test_everything_else_is_compared_by_the_bootstrap() -> None:
    rng = np.random.default_rng(0)

    def counts() -> np.ndarray:
        totals = np.tile([9, 8, 7, 6], (40, 1))
        return np.concatenate(
            [np.tile([9, 9], (40, 1)), rng.integers(0, totals + 1), totals], axis=1
        )

    made = several(bleu_metric(), counts, 2)
    alone = bootstrap_difference(
        made[0].statistics, made[1].statistics, bleu_metric().statistic, draws=300, seed=1
    )
    found = made[0].against(made[1], draws=300, seed=1)
    assert tuple(found) == (*alone, "bootstrap")
    said = [class_counts(rng.integers(0, 3, 40), np.arange(40) % 3, 3) for _ in range(2)]
    matthews = Outcome(MATTHEWS, said[0]).against(Outcome(MATTHEWS, said[1]), draws=300)
    assert matthews.low <= matthews.value <= matthews.high


def test_rank_correlations_are_compared_on_the_same_resamples() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=60)
    good = np.stack([gold + rng.normal(size=60) / 5, gold], axis=1)
    bad = np.stack([rng.normal(size=60), gold], axis=1)
    made = [Outcome(SPEARMAN, rows) for rows in (good, bad, good)]
    found = compare_outcomes(made[:2], made[2], draws=400)
    assert (found.value[0], found.low[0], found.high[0], found.p[0]) == (0, 0, 0, 1)
    assert found.high[1] < 0
    assert found.p[1] == 1 / 401
    assert found.p_adjusted[1] == 2 / 401


def test_an_undefined_correlation_has_no_p() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=20)
    good = Outcome(SPEARMAN, np.stack([gold, gold], axis=1))
    constant = Outcome(SPEARMAN, np.stack([np.ones(20), gold], axis=1))
    found = constant.against(good, draws=100)
    assert np.isnan([found.value, found.low, found.high, found.p]).all()


def test_too_few_examples_are_refused() -> None:
    made = several(ACCURACY, lambda: [[1, 1], [0, 1], [1, 1]], 2)
    with pytest.raises(StatsError, match="on 3 sentences gives no p below"):
        compare_outcomes(made[:1], made[1])
    rows = several(SPEARMAN, lambda: [[1, 1], [0, 1], [1, 2]], 2)
    with pytest.raises(StatsError, match="on 3 sentences gives no p below"):
        compare_outcomes(rows[:1], rows[1])


def test_other_beams_are_compared_like_other_models() -> None:
    few, many = (
        Outcome(ACCURACY, np.ones((9, 2)), provenance={"task": {"hash": "a", "beams": beams}})
        for beams in (1, 4)
    )
    assert many.against(few, draws=100).value == 0


def test_outcomes_of_different_tasks_are_refused() -> None:
    accuracy = Outcome(ACCURACY, np.ones((9, 2)))
    with pytest.raises(
        UsageError, match="The metric of one outcome is loss and of the other accuracy"
    ):
        Outcome(LOSS, np.ones((9, 2))).against(accuracy)
    with pytest.raises(UsageError, match=r"different examples \(8 and 9\)"):
        Outcome(ACCURACY, np.ones((8, 2))).against(accuracy)
    named = Outcome(ACCURACY, np.ones((9, 2)), provenance={"task": {"hash": "a"}})
    with pytest.raises(UsageError, match="needs the same task on both sides"):
        named.against(accuracy)
    hidden = [
        Outcome(ACCURACY, np.ones((9, 2)), provenance={"task": {"hash": "a", "seed": seed}})
        for seed in (0, 1)
    ]
    with pytest.raises(UsageError, match="differ: seed is 1 in one and 0 in the other"):
        hidden[1].against(hidden[0])
    with pytest.raises(UsageError, match="no outcome to compare"):
        compare_outcomes([], accuracy)
