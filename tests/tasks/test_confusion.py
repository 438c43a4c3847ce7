from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from headcount.tasks.classification import ACCURACY, F1, MATTHEWS, class_counts

PREDICTIONS = st.integers(2, 4).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(
            st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)),
            min_size=1,
            max_size=20,
        ),
    )
)


@settings(max_examples=100, deadline=None)
@given(PREDICTIONS)
@pytest.mark.filterwarnings("ignore")
def test_counts_by_class_give_sklearns_f1_and_matthews(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    classes, both = drawn
    said, gold = (np.array(side) for side in zip(*both, strict=True))
    rows = class_counts(said, gold, classes)
    assert MATTHEWS.value(rows) == pytest.approx(matthews_corrcoef(gold, said), abs=1e-12)
    assert F1.scores(rows).tolist() == (said == gold).astype(float).tolist()
    if classes > 2:
        judged = f1_score(gold, said, average="macro")
        assert F1.value(rows) == pytest.approx(judged, abs=1e-12)
    elif 1 in said or 1 in gold:
        assert F1.value(rows) == pytest.approx(f1_score(gold, said), abs=1e-12)


def test_f1_of_a_class_that_never_occurs_is_undefined() -> None:
    rows = class_counts(np.array([0, 0]), np.array([0, 0]), 2)
    assert np.isnan(F1.value(rows))
    assert F1.reason(rows) == "the positive class is neither told nor predicted"


def test_a_classifier_that_says_one_class_has_a_matthews_of_0() -> None:
    assert MATTHEWS.value(class_counts(np.array([1, 1]), np.array([0, 1]), 2)) == 0


def test_accuracy_is_the_share_of_hits() -> None:
    assert ACCURACY.value(np.array([[1.0, 1], [0, 1], [1, 1], [1, 1]])) == 0.75
