"""Tests of `tasks/comparison.py`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tiny_subjects import classifier, translator
from tiny_tokenizers import ENGLISH, PAIRS

from headcount import tasks
from headcount.errors import StatsError, UsageError
from headcount.rooms.labels.labelled import MATTHEWS, SPEARMAN, class_counts
from headcount.stats import (
    bootstrap_difference,
    bootstrap_interval,
    holm,
    mcnemar,
    ratio,
    sign_flip_scores,
)
from headcount.stats.sample import resample_weights
from headcount.tasks.comparison import (
    Metric,
    called,
    choose_metric,
    compare_outcomes,
)
from headcount.tasks.task import ACCURACY, LOSS, Outcome
from headcount.tasks.translations import bleu_metric


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


# ---  -------------------------------------------------------------------------------------------


ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 2.0]])
RATIO = Metric("share", ("hits", "all"), ratio)
MEDIAN = Metric(
    "median",
    ("number",),
    None,
    each=lambda rows: rows[:, 0],
    drawn=lambda rows, weights: np.array(
        [np.median(np.repeat(rows[:, 0], one.astype(int))) for one in weights]
    ),
)


def test_the_value_is_the_statistic_of_the_sum() -> None:
    assert RATIO.value(ROWS) == 0.5
    assert RATIO.scores(ROWS).tolist() == [0.5, 0.75, 0.0]


def test_weights_count_examples_so_often() -> None:
    weights = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0]])
    assert RATIO.resample(ROWS, weights).tolist() == [0.5, 0.75]


def test_a_metric_that_no_sum_gives_is_computed_from_its_rows() -> None:
    assert MEDIAN.value(ROWS) == 1.0
    assert MEDIAN.scores(ROWS).tolist() == [1.0, 3.0, 0.0]
    assert MEDIAN.resample(ROWS, np.array([[0.0, 2.0, 1.0]])).tolist() == [3.0]


def test_an_unknown_metric_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError) as error:
        choose_metric("lm", "bleu", {"loss": 1, "perplexity": 2})
    assert (
        str(error.value) == "Tasks of the kind lm have no metric 'bleu'; choose loss or perplexity."
    )


# ---  -------------------------------------------------------------------------------------------


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
    redrawn = {"statistic": None, "redrawn": MEAN.drawn}
    found = bootstrap_interval(ours, **redrawn, draws=400, confidence=0.9, seed=5)  # type: ignore[arg-type]
    sums = np.hstack([ours, one]), np.hstack([theirs, one])
    usual = bootstrap_interval(sums[0], mean_of_sums, draws=400, confidence=0.9, seed=5)
    assert found == pytest.approx(usual)
    difference = bootstrap_difference(
        np.stack([ours], axis=1), theirs, **redrawn, draws=400, confidence=0.9, seed=5
    )  # type: ignore[arg-type]
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
    found = bootstrap_interval(rows, None, redrawn=SPEARMAN.drawn, draws=200, seed=7)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]))


# --- Metrics of the caller's own ----------------------------------------------------------------


class Evaluated:
    """What a metric of Hugging Face's evaluate looks like."""

    name = "accuracy"
    higher_is_better = True

    def compute(
        self, *, predictions: Any = None, references: Any = None, more: int = 0
    ) -> dict[str, float]:
        """Numbers by name."""
        same = [one == other for one, other in zip(predictions, references, strict=True)]
        return {"accuracy": sum(same) / len(same), "more": more}


def share(said: Any, true: Any) -> float:
    return float(np.mean(np.asarray(said) == np.asarray(true)))


OWN = [share, Evaluated(), Evaluated().compute, partial(Evaluated().compute, more=1)]


@pytest.mark.parametrize("metric", OWN)
def test_any_function_of_predictions_and_labels_is_a_metric(metric: Any) -> None:
    subject = classifier()
    texts = [(text, number % 2) for number, text in enumerate(ENGLISH[:8])]
    ours = tasks.classification(texts, metric=metric).evaluate(subject)
    assert ours.value == tasks.classification(texts).evaluate(subject).value
    low, high = ours.interval()[1:]
    assert low <= ours.value <= high


def test_a_function_of_translations_is_called_for_each_sentence() -> None:
    def length(said: list[str], true: list[str]) -> float:
        return float(len(said[0]))

    task = tasks.translation(PAIRS[:3], metric=length, max_new_tokens=4, beams=1)
    found = task.evaluate(translator())
    assert found.name == "length"
    assert found.value == pytest.approx(np.mean([len(one) for one in found.outputs]))


@pytest.mark.parametrize("name", ["loss", "accuracy", "pearson"])
def test_a_metric_of_ones_own_may_have_any_name(name: str) -> None:
    """It gets predictions and references, not what the metric of that name counts."""

    def furthest(said: Any, true: Any) -> float:
        return float(max(true))

    furthest.__name__ = name
    texts = [(text, float(number)) for number, text in enumerate(ENGLISH[:4])]
    assert tasks.similarity([(text, text, true) for text, true in texts], metric=furthest).evaluate(
        classifier()
    ).value == pytest.approx(3.0)
    labelled = [(text, number % 2) for number, text in enumerate(ENGLISH[:4])]
    assert tasks.classification(labelled, metric=furthest).evaluate(classifier()).value == 1.0

    def length(said: list[str], true: list[str]) -> float:
        return float(len(true[0]))

    length.__name__, length.higher_is_better = name, False  # type: ignore[attr-defined]
    task = tasks.translation(PAIRS[:2], metric=length, max_new_tokens=4, beams=1)
    found = task.evaluate(translator())
    assert found.value == pytest.approx(np.mean([len(target) for _, target in PAIRS[:2]]))
    assert not found.higher_is_better


def test_a_metric_that_gives_no_number_is_told() -> None:
    with pytest.raises(UsageError, match="gave a str; it must give a number"):
        called(lambda said, true: "good", [1], [1])
    with pytest.raises(UsageError, match="gives a, b; give a function that returns one of these"):
        called(lambda said, true: {"a": 1, "b": 2}, [1], [1])
