from __future__ import annotations

import numpy as np
import pytest

from headcount.errors import UsageError
from headcount.stats import ratio
from headcount.tasks.comparison import Metric, choose_metric

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
