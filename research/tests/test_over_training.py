"""Importance over training: scores of checkpoints, and when their order settles."""

from __future__ import annotations

import pytest
from tiny_subjects import classifier
from tiny_tokenizers import PAIRS

from headcount import tasks
from headcount.errors import UsageError
from headcount.importance.gradient import gradient
from headcount.models.subject import Subject
from headcount.records.table import HeadTable
from research.importance.over_training import dynamics, settling

TASK = tasks.classification([(source, n % 2) for n, (source, _) in enumerate(PAIRS)])


def score(subject: Subject) -> HeadTable:
    return gradient(subject, TASK)


def test_checkpoints_are_scored_in_the_order_of_their_steps() -> None:
    last = classifier()
    frame = dynamics([(200, last), (100, classifier(seed=1))], score)
    assert frame["step"].tolist() == [100] * 8 + [200] * 8
    end = frame[frame["step"] == 200]
    assert end["value"].tolist() == score(last).frame["gradient"].tolist()
    best = end[end["rank"] == 1].iloc[0]
    assert tuple(best[["stack", "layer", "head"]]) == score(last).rank("gradient")[0]


def test_the_last_order_agrees_with_itself() -> None:
    frame = dynamics([(1, classifier(seed=1)), (2, classifier())], score)
    found = settling(frame, top=0.25).set_index("step")
    assert found.loc[2, ["value", "low", "high", "kept"]].tolist() == pytest.approx([1, 1, 1, 1])
    assert found.loc[1, "low"] <= found.loc[1, "value"] <= found.loc[1, "high"]


def test_mistakes_are_told() -> None:
    with pytest.raises(UsageError, match="needs two checkpoints or more, not 1"):
        dynamics([(1, classifier())], score)
    with pytest.raises(UsageError, match="The checkpoint 2 has other heads than 1"):
        dynamics([(1, classifier()), (2, classifier(num_hidden_layers=1))], score)
    two = HeadTable.of(classifier().heads, {"a": range(8), "b": range(8)})
    with pytest.raises(UsageError, match="has the columns a, b; say which of them is the score"):
        dynamics([(1, classifier())], lambda subject: two)
