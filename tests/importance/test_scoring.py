"""The score: several measures in one table, kept in a run, broken off and gone on with."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects import save
from tiny_subjects import classifier, encoder, translator
from tiny_tokenizers import ENGLISH, PAIRS
from watching import told

import headcount as hc
from headcount import tasks
from headcount.errors import InputError, RunError, UsageError
from headcount.importance.ablation import ablation
from headcount.importance.examples import Interrupted
from headcount.importance.gradient import gradient
from headcount.importance.scoring import stacks_read
from headcount.records.journal import Journal
from headcount.rooms.relevance.score import relevance
from headcount.text.sentence import texts_of

MODULE = importlib.import_module("headcount.importance.scoring")

LABELLED = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
CLASSES = tasks.classification(LABELLED)
TRANSLATIONS = tasks.translation(PAIRS, metric="loss")


# --- measures and columns -----------------------------------------------------------------------


def test_a_column_a_measure() -> None:
    subject = translator()
    table = hc.score(subject, TRANSLATIONS, by="gradient,confidence")
    assert table.names == ["gradient", "confidence"]
    assert table.frame["gradient"].equals(gradient(subject, TRANSLATIONS).frame["gradient"])
    surveyed = hc.survey(subject, PAIRS, columns=["confidence"])
    assert table.frame["confidence"].equals(surveyed.frame["confidence"])
    assert table.origins["confidence"]["corpus"] == "examples in hand"


def test_by_default_the_gradient() -> None:
    assert hc.score(classifier(), CLASSES).names == ["gradient"]


def test_a_column_of_the_table_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = classifier()
    table = hc.HeadTable.of(subject.heads, {"mine": np.arange(8.0), "confidence": np.ones(8)})
    monkeypatch.setattr(MODULE, "survey", lambda *_: pytest.fail("surveyed again"))
    found = hc.score(subject, CLASSES, by=["mine", "confidence", "gradient"], table=table)
    assert found.names == ["mine", "confidence", "gradient"]
    assert found.rank("mine")[0] == subject.heads[-1]


def test_options_reach_their_measure() -> None:
    subject = classifier()
    found = hc.score(subject, CLASSES, per="token", normalize="layer")
    expected = gradient(subject, CLASSES, per="token", normalize="layer")
    assert found.frame.equals(expected.frame)
    paper = hc.score(subject, CLASSES, convention="paper")
    assert paper.provenance["settings"]["normalize"] == "layer"


def test_ablation_by_its_unit_mode_and_metric() -> None:
    subject = classifier()
    found = hc.score(subject, CLASSES, by="ablation", mode="uniform", unit="others", metric="task")
    expected = ablation(subject, CLASSES, mode="uniform", unit="others", metric="task")
    assert found.frame.equals(expected.frame)
    assert found.names[0] == "ablation_others"
    assert found.provenance["settings"]["metric"] == "accuracy"
    assert "best_single_heads" in found.details


def test_relevance_by_its_rule_beside_the_gradient() -> None:
    subject = translator()
    found = hc.score(
        subject, TRANSLATIONS, by="gradient,relevance", per="token,sentence", rule="ding", limit=3
    )
    few = TRANSLATIONS.limit(3)
    assert found.frame["gradient"].equals(gradient(subject, few, per="token").frame["gradient"])
    expected = relevance(subject, few, per="sentence", rule="ding")
    assert found.frame["relevance"].equals(expected.frame["relevance"])
    assert any("loses at most" in told for told in found.origins["relevance"]["remarks"])


def test_the_limit_takes_the_first_examples_or_a_sample() -> None:
    subject = classifier()
    first = hc.score(subject, CLASSES, limit=4)
    assert first.frame.equals(hc.score(subject, CLASSES.part(range(4))).frame)
    drawn = hc.score(subject, CLASSES, limit=4, seed=1)
    assert not drawn.frame.equals(first.frame)


def test_a_stack_that_the_task_does_not_read_is_na() -> None:
    alike = tasks.similarity([(*pair, float(n)) for n, pair in enumerate(PAIRS)])
    table = hc.score(translator(), alike, by="confidence")
    assert table.stack("enc").frame["confidence"].notna().all()
    assert table.stack("cross").frame["confidence"].isna().all()
    assert table.notes["confidence"] == "dec: not surveyed; cross: not surveyed"


def test_progress_names_the_measure() -> None:
    seen: list[tuple[str, int, int]] = []
    with told(lambda done, total, title: seen.append((title, done, total))):
        hc.score(classifier(), CLASSES, by="gradient,confidence", batch_size=5)
    measures = ("Scoring by gradient", "Surveying")
    assert seen == [(name, done, 10) for name in measures for done in (5, 10)]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"by": "gradiant"}, UsageError, "There is no score 'gradiant'; choose gradient, abl"),
        ({"by": " , "}, UsageError, "No score was asked for; choose gradient"),
        ({"by": "confidence", "per": "token"}, UsageError, "per is 'token', an option of gradient"),
        ({"by": "gradient", "mode": "mean"}, UsageError, "mode is 'mean', an option of ablation"),
        ({"by": "ablation", "mode": "shuffle"}, UsageError, "There is no mode 'shuffle' of abl"),
        ({"by": "ablation", "unit": "pair"}, UsageError, "The unit of ablation is 'pair'"),
        ({"by": "relevance", "rule": "z-"}, UsageError, "z-"),
        ({"by": "relevance", "per": "token"}, UsageError, "per is 'token'; choose step, one back"),
        ({"by": "gradient,relevance", "per": "word"}, UsageError, "per is 'word'; choose example,"),
        (
            {"by": "relevance", "task": tasks.custom(ENGLISH, lambda subject, some: [0.0])},
            UsageError,
            "A custom task has no prediction that relevance could start from",
        ),
        ({"by": "gradient", "per": "word"}, UsageError, "per is 'word'; choose example"),
        ({"by": "confidence", "convention": "code"}, UsageError, "does not exist under the conv"),
        ({"task": CLASSES.part([])}, InputError, r"has no examples, so nothing can be scored"),
        ({"task": PAIRS}, UsageError, "score takes a task, not list"),
        ({"subject": "bert"}, UsageError, "score takes a Subject, not the text 'bert'"),
        ({"limit": 0}, UsageError, "The limit is 0; it must be 1 or more"),
        (
            {"task": tasks.custom([1], lambda subject, some: [0.0]), "by": "confidence"},
            UsageError,
            "examples of the type int and no texts to look at",
        ),
    ],
)
def test_mistakes_are_told(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        hc.score(**({"subject": classifier(), "task": CLASSES} | given))


# --- the run ------------------------------------------------------------------------------------


def test_columns_join_what_a_survey_left(tmp_path: Path) -> None:
    subject = classifier()
    hc.survey(subject, ENGLISH).save(tmp_path / "run")
    table = hc.score(subject, CLASSES, by="gradient,confidence", run=tmp_path / "run")
    kept = hc.Run.open(tmp_path / "run", create=False)
    assert kept.read_table().frame.equals(table.frame)
    assert {"entropy", "confidence", "gradient"} <= set(table.names)
    assert table.origins["gradient"]["task"]["kind"] == "classification"
    assert kept.stage("score-gradient").record["settings"]["per"] == "example"
    frame = kept.read_frame("agreement")
    assert set(frame["first"]) | set(frame["second"]) == {"gradient", "confidence"}
    assert not (tmp_path / "run" / "journal.jsonl").exists()


def test_a_run_of_another_model_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hc.score(classifier(), CLASSES, run=tmp_path / "run")
    monkeypatch.setattr(
        "headcount.importance.gradient.gradient", lambda *_, **__: pytest.fail("worked")
    )
    with pytest.raises(RunError, match="holds a table of tiny bert"):
        hc.score(classifier(seed=1), CLASSES, run=tmp_path / "run")


def test_replace_starts_the_table_anew(tmp_path: Path) -> None:
    place = tmp_path / "run"
    hc.survey(classifier(), ENGLISH).save(place)
    other = classifier(seed=1)
    table = hc.score(other, CLASSES, run=place, replace=True)
    assert hc.HeadTable.load(place).names == table.names == ["gradient"]
    assert hc.HeadTable.load(place).provenance["weights"] == other.weights_hash


def test_replaced_and_broken_off_it_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "run"
    hc.survey(classifier(seed=1), ENGLISH).save(place)
    broken_off(place, replace=True)
    units = (place / "journal.jsonl").read_bytes()
    broken_off(place, replace=True)
    assert (place / "journal.jsonl").read_bytes() == units
    table = hc.score(classifier(), CLASSES, run=place, batch_size=4, replace=True)
    assert table.frame.equals(hc.score(classifier(), CLASSES, batch_size=4).frame)


def broken_off(place: Path, **given: Any) -> None:
    """A score of three batches, interrupted after the second."""

    with pytest.raises(KeyboardInterrupt), told(stop_at_8):
        hc.score(classifier(), CLASSES, run=place, batch_size=4, **given)


def stop_at_8(done: int, total: int, title: str) -> None:
    if done >= 8:
        raise KeyboardInterrupt


def test_ctrl_c_leaves_a_partial_table_and_the_same_call_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "run"
    whole = hc.score(classifier(), CLASSES, batch_size=4)

    message = r"what was measured is in .*run/, and the same call goe"
    with pytest.raises(Interrupted, match=message), told(stop_at_8):
        hc.score(classifier(), CLASSES, run=place, batch_size=4)
    partial = hc.HeadTable.load(place)
    assert partial.frame["gradient"].notna().all()
    assert partial.notes["gradient"] == "interrupted after 4 of 10 examples"
    assert not hc.Run.open(place, create=False).stage("score-gradient").done
    table = hc.score(classifier(), CLASSES, run=place, batch_size=4)
    for one, two in zip(table.parts(), whole.parts(), strict=True):
        assert one.equals(two)
    assert not table.notes
    assert not hc.HeadTable.load(place).notes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": tasks.classification(LABELLED[:9])}, "was begun with data = "),
        ({"subject": classifier(seed=1)}, "holds a table of|begun with weights = "),
        ({"batch_size": 5}, "batch_size = 4, and now batch_size = 5"),
        ({"per": "token"}, 'per = "example", and now per = "token"'),
    ],
)
def test_a_journal_of_other_work_is_refused_by_name(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    broken_off(tmp_path / "run")
    usual = {"subject": classifier(), "task": CLASSES, "batch_size": 4, "run": tmp_path / "run"}
    with pytest.raises(RunError, match=message):
        hc.score(**(usual | given))


def test_a_journal_cut_off_in_mid_line_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "run"
    broken_off(place)
    journal = place / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    table = hc.score(classifier(), CLASSES, run=place, batch_size=4)
    assert table.frame.equals(hc.score(classifier(), CLASSES, batch_size=4).frame)


def test_ctrl_c_between_two_measures_keeps_the_first(tmp_path: Path) -> None:
    def stop(done: int, total: int, title: str) -> None:
        if title == "Surveying":
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped, told(stop):
        hc.score(classifier(), CLASSES, by="gradient,confidence", run=tmp_path / "run")
    assert stopped.value.table.names == ["gradient"]
    assert hc.HeadTable.load(tmp_path / "run").names == ["gradient"]


def test_unfinished_units_of_another_measure_stay(tmp_path: Path) -> None:
    place = tmp_path / "run"
    broken_off(place)
    hc.score(classifier(), CLASSES, by="confidence", run=place)
    assert (place / "journal.jsonl").exists()


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import headcount as hc
from headcount import tasks
from headcount.records.journal import Journal
from tiny_tokenizers import PAIRS

write, left = Journal._write, [int(sys.argv[4])]

def killing(journal, line, unit):
    write(journal, line, unit)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

Journal._write = killing
task = tasks.classification([(source, n % 2) for n, (source, _) in enumerate(PAIRS)])
subject = hc.load(sys.argv[2], device="cpu")
by = "gradient,confidence,relevance,ablation"
hc.score(subject, task, by=by, run=sys.argv[3], batch_size=3)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_killed_and_run_again_it_ends_with_the_same_table(tmp_path: Path) -> None:
    place = tmp_path / "run"
    head = {"model_class": "BertForSequenceClassification", "num_labels": 2}
    model = save(tmp_path / "model", "bert", "wordpiece", **head)
    for units, last in ((3, "gradient 1"), (9, "ablation batch ")):
        words = [str(Path(__file__).parent.parent), str(model), str(place), str(units)]
        done = subprocess.run([sys.executable, "-c", KILLED, *words])
        assert done.returncode == -signal.SIGKILL
        with Journal.open(place / "journal.jsonl", _fingerprint(place)) as journal:
            assert list(journal.done)[-1].startswith(last)
    subject, by = hc.load(str(model), device="cpu"), "gradient,confidence,relevance,ablation"
    again = hc.score(subject, CLASSES, by=by, run=place, batch_size=3)
    whole = hc.score(subject, CLASSES, by=by, batch_size=3)
    for one, two in zip(again.parts(), whole.parts(), strict=True):
        assert one.equals(two)
    assert hc.HeadTable.load(place).frame.equals(whole.frame)


def _fingerprint(place: Path) -> dict[str, Any]:
    return json.loads((place / "journal.jsonl").read_text().splitlines()[0])["fingerprint"]


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, calls = tmp_path / "run", []

    def full(descriptor: int, data: bytes) -> None:
        calls.append(descriptor)
        if len(calls) == 4:  # header, settings, one batch, then
            raise OSError(28, "No space left on device")
        os.write(descriptor, data)

    monkeypatch.setattr("headcount.records.journal.write_all", full)
    with pytest.raises(RunError, match=r"'gradient 1' could not be added .*: the disk is full"):
        hc.score(classifier(), CLASSES, run=place, batch_size=4)
    table = hc.score(classifier(), CLASSES, run=place, batch_size=4)
    assert table.frame.equals(hc.score(classifier(), CLASSES, batch_size=4).frame)


def test_an_encoder_without_a_head_is_refused_by_the_task() -> None:
    with pytest.raises(hc.HeadcountError, match="classification needs a model with a classifier"):
        hc.score(encoder(), CLASSES)


# --- The texts that a task has a model read -----------------------------------------------------


ALIKE = tasks.similarity([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)], prefix="query: ")


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        (tasks.translation([("Rain.", "Regen.")]), [("Rain.", "Regen.")]),
        (tasks.classification([("A fine film.", 1)]), [("A fine film.",)]),
        (tasks.regression([("A dog.", "A hound.", 4.5)]), [("A dog.", "A hound.")]),
        (tasks.lm(["Rain fell."]), [("Rain fell.",)]),
        (
            ALIKE,
            [("query: A dog.",), ("query: A hound.",), ("query: A dog.",), ("query: A tax.",)],
        ),
    ],
)
def test_texts_by_kind(task: tasks.Task, texts: list[tuple[str, ...]]) -> None:
    assert [texts_of(item) for item in task.texts()] == texts


def test_examples_without_texts_are_refused() -> None:
    own = tasks.custom([1, 2], lambda subject, numbers: numbers)
    with pytest.raises(UsageError, match="examples of the type int and no texts to look at"):
        own.texts()


def test_an_encoder_decoder_that_only_reads_has_one_stack_to_look_at() -> None:
    pairs = tasks.translation([("Rain.", "Regen.")])
    assert stacks_read(ALIKE, translator()) == ("enc",)
    assert stacks_read(pairs, translator()) == ("enc", "dec", "cross")
    assert stacks_read(ALIKE, classifier()) == ("enc",)
