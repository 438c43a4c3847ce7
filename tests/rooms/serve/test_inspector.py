"""A model is tried with heads on and off, and is left as it was."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
import tiny_subjects
import torch
from model_state import assert_same, state_of
from report_runs import made_sizes

import headcount as hc
from headcount.errors import InputError, RunError, UsageError
from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.reports.parts.look import asset
from headcount.reports.parts.numbers import Source
from headcount.rooms.serve.inspector import Inspector, inspector_of
from headcount.tasks import forward
from headcount.text import Pair
from headcount.wiring import valve


def test_switching_heads_off_changes_what_comes_after_them() -> None:
    subject = tiny_subjects.encoder()
    before = state_of(subject)
    off, inspector = [f"enc.0.{head}" for head in range(4)], inspector_of(subject)
    answer = inspector.ask("Rain fell.", "It rained.", off)
    source = inspector.look("Rain fell.", "It rained.", off)
    assert answer["off"] == off
    ((name, was, now),) = answer["bars"]
    assert (name, was != now) == ("cosine of the two", True)
    changed = source.table.frame["changed"]
    assert np.allclose(changed.loc["enc", 0], 0, atol=1e-6)
    assert (changed.loc["enc", 1] > 1e-6).all()
    assert [one.id for one in source.exhibits] == ["whole", "cut"]
    assert_same(before, state_of(subject))


@pytest.mark.parametrize(
    ("kind", "title", "does"),
    [
        ("translator", "Translation", "translates"),
        ("writer", "Goes on", "goes on writing"),
        ("filler", "Hidden word", "fills in the hidden word"),
        ("classifier", "Class", "classifies"),
    ],
)
def test_every_kind_of_model_predicts_something(kind: str, title: str, does: str) -> None:
    subject = getattr(tiny_subjects, kind)()
    hidden = getattr(subject.tokenizer, "mask_token", None)
    text = f"Rain {hidden} fell." if kind == "filler" else "Rain fell."
    inspector, off = inspector_of(subject), [str(subject.heads[0])]
    whole, cut = inspector.ask(text), inspector.ask(text, off=off)
    assert (whole["title"], whole["off"], whole["cut"]) == (title, [], None)
    assert inspector.about()["predicts"] == does
    assert (cut["whole"], cut["off"]) == (whole["whole"], off)
    for name, before, now in cut["bars"]:
        assert isinstance(name, str)
        assert all(0 <= share <= 1 for share in (before, now) if share is not None)
    assert all(now is None for _, _, now in whole["bars"])
    assert inspector.look(text).table.names == ["sharpness"]


def test_a_translation_is_compared_token_by_token() -> None:
    """Its shares are those that the model gives its own words, teacher-forced."""
    subject = tiny_subjects.translator()
    answer = inspector_of(subject).ask("Rain fell.", off=["cross.0.0", "cross.0.1"])
    pairs = [Pair("Rain fell.", answer["whole"])]
    loss = hc.tasks.translation(pairs, metric="loss").evaluate(subject).value
    shares = [before for _, before, _ in answer["bars"]]
    assert -np.log(shares).mean() == pytest.approx(loss, abs=0.01)
    assert any(before != now for _, before, now in answer["bars"])


def test_sets_are_of_heads_that_are_there() -> None:
    inspector = inspector_of(hc.load("translator", device="cpu"))
    about = inspector.about()
    assert sum("gates" in one["name"] for one in about["sets"]) == 3
    assert {head for one in about["sets"] for head in one["off"]} <= set(about["heads"])
    sinks = next(one for one in about["sets"] if one.get("role") == "sink")
    assert sinks["off"] == [head for head, role in about["roles"].items() if role == "sink"]


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"There is no head enc\.9\.0"):
        inspector_of(tiny_subjects.encoder()).ask("Rain.", off=["enc.9.0"])


def test_a_run_lends_its_columns_and_another_models_is_refused(tmp_path: Path) -> None:
    subject = tiny_subjects.encoder()
    with Run.open(tmp_path / "run") as run:
        about = {"weights": subject.weights_hash}
        run.write_table(HeadTable.of(subject.heads, {"confidence": range(8)}, provenance=about))
    with Run.open(tmp_path / "other") as run:
        run.write_table(HeadTable.of([Head("enc", 0, 0)], {"confidence": [1.0]}))
    source = inspector_of(subject, tmp_path / "run").look("Rain.")
    assert source.table.names == ["confidence", "sharpness"]
    with pytest.raises(RunError, match="choose another folder"):
        inspector_of(subject, tmp_path / "other")


def test_the_sentence_that_is_there_at_first_translates_well() -> None:
    (text, *_) = re.findall(r"<textarea[^>]*>([^<]*)<", asset("serve.html"))
    said = Inspector(hc.load("translator", device="cpu")).ask(text)["whole"]
    assert said == (
        "Meine Großmutter erinnert sich an den Winter, als das Gebäude als Schule benutzte."
    )


def test_the_gates_of_a_run_are_sets() -> None:
    subject = tiny_subjects.encoder()
    heads = [str(head) for head in subject.heads]
    gates = made_sizes({"enc": (2, 4)}).query("step < 2")
    source = Source(HeadTable.of(subject.heads, {}), frames={"gates": gates})
    (found,) = Inspector(subject, source).about()["sets"]
    assert found["off"] == heads[1:5]
    assert found["name"] == f"keep the gates’ {len(heads) - 4}"


def test_a_layer_is_switched_off_by_its_name() -> None:
    found = Inspector(tiny_subjects.classifier()).ask("Rain fell.", "", ["enc.1", "enc.0.2"])
    assert found["off"] == ["enc.0.2", "enc.1.0", "enc.1.1", "enc.1.2", "enc.1.3"]


@pytest.mark.parametrize("kind", ["encoder", "classifier"])
@pytest.mark.parametrize("text", ["\u200b", "\ud800", "\x00", "\ufeff\u2060"])
def test_a_text_without_a_token_is_told(kind: str, text: str) -> None:
    """Signs that the tokenizer drops; where it keeps one, it is a text like others."""
    inspector = inspector_of(getattr(tiny_subjects, kind)())
    for asked in (inspector.ask, inspector.look):
        for second in ("", text):
            with contextlib.suppress(InputError):
                asked(text, second)
    with pytest.raises(InputError, match=r"The sentence '\\u200b' has no token for this token"):
        inspector.ask("\u200b")


@pytest.mark.parametrize("kind", ["translator", "writer", "filler", "classifier"])
def test_the_heads_that_change_a_word_are_few_and_do(kind: str) -> None:
    subject = getattr(tiny_subjects, kind)()
    before = state_of(subject)
    hidden = getattr(subject.tokenizer, "mask_token", None)
    text = f"Rain {hidden} fell." if kind == "filler" else "Rain fell."
    inspector = inspector_of(subject)
    found = inspector.fewest(text)["off"]
    assert set(found) <= set(map(str, subject.heads))
    batch, place = inspector._choice(text, "", 0)

    def first(off: list[str]) -> int:
        with torch.no_grad(), valve(subject, dict.fromkeys(off, 0.0)):
            return int(forward(subject, batch).logits[place].argmax())

    if found:  # the choice is another, and each of the heads is needed for that
        assert first(found) != first([])
        assert all(first([one for one in found if one != head]) == first([]) for head in found)
    assert_same(before, state_of(subject))


def test_similarity_has_no_word_to_change() -> None:
    with pytest.raises(UsageError, match="There is no word that heads could change"):
        inspector_of(tiny_subjects.encoder()).fewest("Rain fell.", "It rained.")


def test_a_sentence_is_offered_in_which_heads_matter() -> None:
    subject = tiny_subjects.filler()
    found = inspector_of(subject).offer("Rain fell.", off=[str(head) for head in subject.heads[1:]])
    assert found["times"] >= 1
    assert not found["text"] or subject.tokenizer.mask_token in found["text"]


@pytest.mark.parametrize("kind", ["encoder", "translator", "writer"])
def test_with_all_heads_on_nothing_is_offered(kind: str) -> None:
    inspector = inspector_of(getattr(tiny_subjects, kind)())
    with pytest.raises(UsageError, match="All heads are on; switch some off to see a sentence"):
        inspector.offer("Rain fell.")
    assert set(inspector.offer("Rain fell.", off=["enc.0" if kind != "writer" else "dec.0"])) == {
        "text", "times",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["encoder", "classifier", "filler", "translator", "writer"])
def test_a_text_beyond_what_the_model_takes_is_answered(kind: str) -> None:
    inspector = inspector_of(getattr(tiny_subjects, kind)())
    off = [str(inspector.subject.heads[0])]
    for asked in (inspector.ask, inspector.look):
        assert asked("a " * 999, off=off)
    assert len(inspector.ask("a " * 999, "b " * 999, off)["off"]) == 1
