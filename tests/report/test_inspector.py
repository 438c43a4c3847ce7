"""A model is tried with heads on and off, and is left as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_subjects
from model_state import assert_same, state_of

from headcount.errors import RunError, UsageError
from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.report.inspector import inspector_of


def test_switching_heads_off_changes_what_comes_after_them() -> None:
    subject = tiny_subjects.encoder()
    before = state_of(subject)
    off = [f"enc.0.{head}" for head in range(4)]
    answers, source = inspector_of(subject).look("Rain fell.", "It rained.", off)
    assert [one["without"] for one in answers] == [[], off]
    assert answers[0]["text"] != answers[1]["text"]
    changed = source.table.frame["changed"]
    assert np.allclose(changed.loc["enc", 0], 0, atol=1e-6)
    assert (changed.loc["enc", 1] > 1e-6).all()
    assert [one.id for one in source.exhibits] == ["whole", "cut"]
    assert_same(before, state_of(subject))


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("translator", "Translation"),
        ("writer", "Goes on"),
        ("filler", "Hidden word"),
        ("classifier", "Class"),
    ],
)
def test_every_kind_of_model_predicts_something(kind: str, title: str) -> None:
    subject = getattr(tiny_subjects, kind)()
    hidden = getattr(subject.tokenizer, "mask_token", None)
    text = f"Rain {hidden} fell." if kind == "filler" else "Rain fell."
    answers, source = inspector_of(subject).look(text)
    assert answers[0]["title"] == title
    assert "guesses" in answers[-1] or answers[0]["text"] is not None
    assert source.table.names == ["sharpness"]


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"There is no head enc\.9\.0"):
        inspector_of(tiny_subjects.encoder()).look("Rain.", off=["enc.9.0"])


def test_a_run_lends_its_columns_and_another_models_is_refused(tmp_path: Path) -> None:
    subject = tiny_subjects.encoder()
    with Run.open(tmp_path / "run") as run:
        about = {"weights": subject.weights_hash}
        run.write_table(HeadTable.of(subject.heads, {"confidence": range(8)}, provenance=about))
    with Run.open(tmp_path / "other") as run:
        run.write_table(HeadTable.of([Head("enc", 0, 0)], {"confidence": [1.0]}))
    _, source = inspector_of(subject, tmp_path / "run").look("Rain.")
    assert source.table.names == ["confidence", "sharpness"]
    with pytest.raises(RunError, match="choose another folder"):
        inspector_of(subject, tmp_path / "other")
