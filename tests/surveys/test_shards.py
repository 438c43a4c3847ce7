"""Tests of `surveys/shards.py`: broken off anywhere, by anybody, a survey ends with its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subjects import subject_of

import headcount as hc
from headcount.errors import InputError, RunError, UsageError
from headcount.records import HeadTable
from headcount.records.engine import LocalEngine
from headcount.rooms.families.divergence import Divergence
from headcount.surveys import shards
from headcount.surveys.shards import ShardWork
from headcount.surveys.surveying import survey
from headcount.text.corpus import read_corpus, read_sample

TEXTS = [f"The {number} cats sat on the mat and {number * 7} dogs saw it." for number in range(23)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of five sentences, three of which become one file."""
    monkeypatch.setattr(shards, "SHARD_ITEMS", 5)
    monkeypatch.setattr(shards, "TOGETHER", 3)


def assert_same(one: HeadTable, other: HeadTable, atol: float = 1e-6) -> None:
    """Counts bit for bit, sums to 1e-6."""
    pd.testing.assert_frame_equal(one.frame, other.frame, atol=atol, rtol=0)
    assert list(one.details) == list(other.details)
    for name, frame in one.details.items():
        pd.testing.assert_frame_equal(frame, other.details[name], atol=atol, rtol=0)
        counts = frame.select_dtypes("integer")
        pd.testing.assert_frame_equal(counts, other.details[name][counts.columns])
    assert one.provenance["counts"] == other.provenance["counts"]


class Killed(BaseException):
    """As Ctrl-C or a kill: nothing may be done about it."""


def kill_after(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """Stop after so many shards were kept; the list grows by each shard that is worked on."""
    done: list[int] = []
    write = shards._Kept.write

    def stopping(self: Any, number: int, state: Any) -> None:
        if len(done) == count:
            raise Killed
        write(self, number, state)
        done.append(number)

    monkeypatch.setattr(shards._Kept, "write", stopping)
    return done


def test_where_a_corpus_is_cut_depends_on_the_corpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read_corpus(TEXTS)
    cut = [(p.number, [index for index, _ in p.parts]) for p in shards.cut_into_shards(corpus)]
    assert [numbers for _, numbers in cut] == [
        list(range(start, min(start + 5, 23))) for start in range(0, 23, 5)
    ]
    assert [piece.number for piece in shards.cut_into_shards(corpus, 3)] == [3, 4]
    monkeypatch.setattr(shards, "SHARD_CHARACTERS", 100)
    assert [len(piece.parts) for piece in shards.cut_into_shards(corpus)] == [3] * 7 + [2]


@pytest.mark.parametrize("killed", [1, 4])
def test_a_survey_that_was_killed_goes_on(
    killed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_of("bert", "wordpiece")
    whole = survey(subject, TEXTS)
    with monkeypatch.context() as patch:
        kill_after(patch, killed)
        with pytest.raises(Killed):
            survey(subject, TEXTS, run=ShardWork(folder=tmp_path))
    with monkeypatch.context() as patch:
        again = kill_after(patch, 99)
        resumed = survey(
            subject, TEXTS, reading=hc.ReadingOptions(batch_size=3), run=ShardWork(folder=tmp_path)
        )
        assert_same(resumed, whole)
        assert again == list(range(killed, 5)), "what was done is not done again"
    assert_same(survey(subject, TEXTS, run=ShardWork(folder=tmp_path)), resumed, atol=0)
    files = {file.name for file in tmp_path.rglob("*.safetensors")}
    assert files == {"until-3.safetensors", "shard-3.safetensors", "shard-4.safetensors"}


def test_every_tally_is_kept_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees, mentions, features, patterns, distances, rare tokens, and a random twin."""
    monkeypatch.setattr(shards, "SHARD_ITEMS", 8)
    subject = subject_of("bert", "wordpiece")
    how: dict[str, Any] = {
        "treebank": read_sample(limit=20),
        "coref": read_sample("coref.jsonl", limit=10),
        "patterns": "rule",
        "offset_mass": True,
        "control": "random-init",
    }
    one, two = Divergence(), Divergence()
    whole = survey(subject, tallies=[one], **how)
    with monkeypatch.context() as patch:
        for killed in (1, 2, 1):  # three times broken off, each time further on
            patch.setattr(shards, "SHARD_ITEMS", 8)
            kill_after(patch, killed)
            with pytest.raises(Killed):
                survey(subject, tallies=[Divergence()], **how, run=ShardWork(folder=tmp_path))
            patch.undo()
    assert_same(survey(subject, tallies=[two], **how, run=ShardWork(folder=tmp_path)), whole)
    for stack, pairs in one.pairs().items():
        np.testing.assert_allclose(two.pairs()[stack].js_sum, pairs.js_sum, atol=1e-6)
        assert two.pairs()[stack].rows == pairs.rows


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 5))
def test_shards_may_come_back_in_any_order(order: list[int], killed: int) -> None:
    import tempfile

    subject = subject_of("bert", "wordpiece")

    class Shuffled(LocalEngine):
        def run(self, make: Any, pieces: Any) -> Iterator[Any]:

            answers = {answer.number: answer for answer in LocalEngine().run(make, pieces)}
            for count, number in enumerate(one for one in order if one in answers):
                if count == killed:
                    raise Killed
                yield answers[number]

    class Resumed(Shuffled):
        def run(self, make: Any, pieces: Any) -> Iterator[Any]:

            return LocalEngine().run(make, pieces)

    whole = survey(subject, TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        if killed < 5:
            with pytest.raises(Killed):
                survey(subject, TEXTS, engine=Shuffled(), run=ShardWork(folder=folder))
        else:
            assert_same(survey(subject, TEXTS, engine=Shuffled()), whole, atol=0)
        assert_same(survey(subject, TEXTS, engine=Resumed(), run=ShardWork(folder=folder)), whole)


def test_another_survey_does_not_go_on_from_there(tmp_path: Path) -> None:
    subject = subject_of("bert", "wordpiece")
    survey(subject, TEXTS, columns=["self"], run=ShardWork(folder=tmp_path))
    with pytest.raises(RunError, match=r"was begun with data = .*; run it as before to continue"):
        survey(subject, TEXTS[:9], columns=["self"], run=ShardWork(folder=tmp_path))
    with pytest.raises(RunError, match=r"was begun with settings\.max_length = null"):
        survey(
            subject,
            TEXTS,
            columns=["self"],
            reading=hc.ReadingOptions(max_length=8),
            run=ShardWork(folder=tmp_path),
        )
    with pytest.raises(RunError, match="was begun with tallies = "):
        survey(subject, TEXTS, columns=["entropy"], run=ShardWork(folder=tmp_path))


def test_files_that_are_not_ours_are_not_read(tmp_path: Path) -> None:
    subject = subject_of("bert", "wordpiece")
    survey(subject, TEXTS[:5], columns=["self"], run=ShardWork(folder=tmp_path))
    (file,) = tmp_path.rglob("shard-0.safetensors")
    good = file.read_bytes()
    file.write_bytes(good[:-9])
    with pytest.raises(RunError, match=r"shard-0.safetensors is not what was written there"):
        survey(subject, TEXTS[:5], columns=["self"], run=ShardWork(folder=tmp_path))
    file.unlink()
    with pytest.raises(RunError, match=r"shard-0.safetensors cannot be read: no such file"):
        survey(subject, TEXTS[:5], columns=["self"], run=ShardWork(folder=tmp_path))


@dataclass
class Own:
    """A class that no tally names."""

    count: int


def test_only_known_classes_are_kept() -> None:
    with pytest.raises(UsageError, match=r"holds a .*\.Own, which is not kept .*; name the class"):
        shards.state_bytes({"parts": Own(1)}, {})
    kinds = {f"{Own.__module__}.Own": Own}
    data = shards.state_bytes({"parts": [Own(1)], "x": np.array(2.5)}, kinds)
    assert shards.state_from(data, kinds) == {"parts": [Own(1)], "x": np.array(2.5)}
    with pytest.raises(KeyError, match="Own"):
        shards.state_from(data, {})
    with pytest.raises(TypeError, match="other fields"):
        shards.state_from(data.replace(b'"count"', b'"__eq_"'), kinds)


# --- Poisoned examples ----------------------------------------------------------------------------


def poison(subject: Any, monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[int]:
    """The model breaks on these texts, as on a token that it has no embedding for."""
    _ = subject.anatomy  # found by a forward of its own
    ids = {tuple(subject.tokenizer(text)["input_ids"]) for text in texts}
    forward, rows = subject.model.forward, []

    def breaking(*args: Any, **inputs: Any) -> Any:
        rows.append(len(inputs["input_ids"]))
        for row, mask in zip(inputs["input_ids"], inputs["attention_mask"], strict=True):
            if tuple(row[mask.bool()].tolist()) in ids:
                raise IndexError("index out of range in self")
        return forward(*args, **inputs)

    monkeypatch.setattr(subject.model, "forward", breaking)
    return rows


def test_a_poisoned_example_is_named_and_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_of("bert", "wordpiece")
    without = survey(subject, [text for text in TEXTS if text not in (TEXTS[0], TEXTS[12])])
    path = tmp_path / "cats.txt"
    path.write_text("\n" + "\n".join(TEXTS))
    poison(subject, monkeypatch, TEXTS[0], TEXTS[12])
    found = survey(subject, path, run=ShardWork(folder=tmp_path / "shards"))
    pd.testing.assert_frame_equal(found.frame, without.frame, atol=1e-6, rtol=0)
    assert found.provenance["set_aside"] == 2
    assert found.provenance["remarks"] == [
        f"Item {index + 1} of {path} (line {index + 2}) was set aside: IndexError: index out of "
        "range in self"
        for index in (0, 12)
    ]
    assert found.provenance["counts"]["sentences"] == 21
    again = survey(subject, path, run=ShardWork(folder=tmp_path / "shards"))
    assert again.provenance["remarks"] == found.provenance["remarks"]


def test_an_error_that_everything_meets_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of("bert", "wordpiece")
    rows = poison(subject, monkeypatch, *TEXTS)
    with pytest.raises(IndexError, match="index out of range in self"):
        survey(subject, TEXTS)
    assert len(rows) < 40, "not every example is tried by itself"
    with pytest.raises(InputError, match="has no sentence"):
        survey(subject, [""])
