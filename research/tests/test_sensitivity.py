"""What dies first: curves by stack and by layer."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import tiny_subjects
from small_tasks import PAIRS

from headcount import tasks
from headcount.errors import UnknownHead, UsageError
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.wiring import valve
from research.importance.sensitivity import first_to_fall, sensitivity


@pytest.fixture(scope="module")
def translator() -> Subject:
    return tiny_subjects.translator()


@pytest.fixture(scope="module")
def task() -> Any:
    return tasks.translation(PAIRS, metric="loss")


def test_heads_go_from_the_end_of_the_rank(translator: Subject, task: Any) -> None:
    rank = translator.heads[::-1]  # the first head is the least important
    frame = sensitivity(translator, task, rank, steps=4)
    assert frame["stack"].unique().tolist() == ["enc", "dec", "cross"]
    assert frame["layer"].isna().all()
    encoder = frame[frame["stack"] == "enc"]
    assert encoder["removed"].tolist() == [2, 4, 6, 8]
    assert encoder["share"].tolist() == [0.25, 0.5, 0.75, 1.0]
    with valve(translator, dict.fromkeys(translator.heads[:4], 0.0)):
        assert encoder["value"].iloc[1] == pytest.approx(task.evaluate(translator).value, rel=1e-6)
    assert frame.attrs["baseline"] == pytest.approx(task.evaluate(translator).value, rel=1e-6)


def test_layers_have_curves_of_their_own(translator: Subject, task: Any) -> None:
    frame = sensitivity(translator, task, translator.heads, by="layer", steps=2)
    curves = frame.groupby(["stack", "layer"])["removed"].agg(list)
    assert len(curves) == len(translator.anatomy.sites)
    assert curves.tolist() == [[2, 4]] * len(curves)


def test_the_first_to_fall_comes_first() -> None:
    curves = pd.DataFrame(
        {
            "stack": ["enc"] * 3 + ["dec"] * 3,
            "layer": pd.array([None] * 6, dtype="Int64"),
            "removed": [1, 2, 3] * 2,
            "share": [1 / 3, 2 / 3, 1.0] * 2,
            "cost": [0.1, 0.2, 0.9, 0.6, 0.1, 1.0],
        }
    )
    found = first_to_fall(curves, tolerance=0.5)
    assert found["stack"].tolist() == ["dec", "enc"]
    assert found["share"].tolist() == [0.0, pytest.approx(2 / 3)]  # not where it rose again


@pytest.mark.parametrize(
    ("rank", "options", "error", "message"),
    [
        (
            lambda heads: heads[1:],
            {},
            UsageError,
            "has 31 of the model's 32 heads and lacks enc.0.0",
        ),
        (lambda heads: [*heads, Head("enc", 9, 9)], {}, UnknownHead, "There is no head enc.9.9"),
        (lambda heads: heads, {"by": "model"}, UsageError, "by 'stack' or 'layer', not by 'model'"),
        (lambda heads: heads, {"steps": 0}, UsageError, "A curve of 0 steps shows nothing"),
    ],
)
def test_wrong_calls_are_told(
    translator: Subject, task: Any, rank: Any, options: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        sensitivity(translator, task, rank(translator.heads), **options)
