"""Which trials are run on which model, and the table they give."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_subjects
from tiny_tokenizers import ENGLISH, PAIRS

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.models.load import load
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.passes import run_trials, trials_for
from headcount.survey.survey import survey
from headcount.survey.trials.alignment import Pairs, SinkTrial
from headcount.survey.trials.needle import Needle
from headcount.survey.trials.repeats import Copying, Repeats

WRITER = tiny_subjects.writer("gpt2")
TRANSLATOR = tiny_subjects.translator()
ENCODER = tiny_subjects.encoder()


@pytest.mark.parametrize(
    ("subject", "corpus", "names"),
    [
        (WRITER, None, ["repeats", "copying", "sink", "needle"]),
        (WRITER, ENGLISH, ["repeats", "copying", "sink", "needle"]),
        (TRANSLATOR, PAIRS, ["repeats", "copying", "pairs"]),
        (TRANSLATOR, None, ["repeats", "copying"]),
        (ENCODER, ENGLISH, ["repeats"]),
        (Subject(WRITER.model), None, ["repeats", "copying"]),
    ],
    ids=["decoder", "own text", "translator", "no pairs", "encoder", "no tokenizer"],
)
def test_trials_that_make_sense(subject: Subject, corpus: object, names: list[str]) -> None:
    assert [trial.name for trial in trials_for(subject, corpus)] == names


def test_one_table_that_joins_a_survey() -> None:
    trials = [Repeats(length=8, examples=16), Pairs(PAIRS)]
    table = run_trials(TRANSLATOR, trials=trials)
    assert [column.name for trial in trials for column in trial.columns] == table.names
    whole = survey(TRANSLATOR, PAIRS).join(table)
    assert {"confidence", "induction", "alignment", "source_end"} <= {*whole.names}
    assert whole.details["trials"]["column"].isin(table.names).all()
    assert whole.frame.loc["enc", "induction"].isna().all()
    assert whole.frame.loc["dec", "induction"].notna().all()
    assert whole.frame.loc["cross", "source_end"].notna().all()


def test_it_is_kept_in_a_run_directory(tmp_path: Path) -> None:
    table = run_trials(WRITER, trials=[Repeats(length=8), SinkTrial(ENGLISH, length=12)])
    table.save(tmp_path)
    again = HeadTable.load(tmp_path)
    assert {*again.details} == {"trials", "sinks"}
    assert again.frame.equals(table.frame)
    assert again.provenance["trials"]["repeats"]["length"] == 8
    assert again.provenance["trials"]["sink"]["data"].startswith("sha256:")


def test_a_trial_that_the_text_is_too_short_for_is_left_out_and_told() -> None:
    table = run_trials(WRITER, ENGLISH[:2])
    assert "induction" in table.names
    assert "sink" not in table.names
    remarks = table.provenance["remarks"]
    assert remarks[0].startswith("the trial 'sink' was left out: The text has")
    with pytest.raises(InputError, match="give more text"):
        run_trials(WRITER, trials=[SinkTrial(ENGLISH[:2])])


def test_a_trial_of_one_s_own_that_means_nothing_is_refused() -> None:
    message = "The trial 'copying' means nothing for tiny bert: the model has no decoder; leave it"
    with pytest.raises(UsageError, match=message):
        run_trials(ENCODER, trials=[Copying()])


def test_progress_is_told_before_each_trial() -> None:
    told: list[tuple[int, int, str]] = []
    trials = [Repeats(length=6, examples=2), Copying(Repeats(length=6, examples=2))]
    run_trials(WRITER, trials=trials, progress=lambda *one: told.append(one))
    assert told == [(0, 2, "repeats"), (1, 2, "copying")]


def test_random_models_stay_near_chance() -> None:
    for family in ("gpt2", "llama"):
        rows = run_trials(tiny_subjects.writer(family), trials=[Repeats()]).details["trials"]
        for name, most in (("induction", 0.15), ("previous_random", 0.3)):
            asked = rows[rows["column"] == name]
            assert (asked["value"] - asked["baseline"]).abs().max() < most


def test_the_bundled_translator_has_alignment_heads() -> None:
    table = run_trials(load("translator"), trials=[Pairs(sample.pairs(), examples=60)])
    best = table.rank("alignment_read")[:2]
    assert {*best} == {Head("cross", 1, 5), Head("cross", 2, 6)}
    rows = table.details["trials"]
    read = rows[rows["column"] == "alignment_read"].set_index(["layer", "head"])
    for head in best:
        row = read.loc[(head.layer, head.index)]
        assert row["value"] > row["baseline"] + 0.3
        assert row["p_adjusted"] < 0.01
    assert table.rank("source_end")[0] == Head("cross", 0, 5)


@pytest.mark.real
def test_smollm2_has_induction_and_retrieval_heads(smollm2: Subject) -> None:
    texts = sample.sentences()
    trials = [
        Repeats(length=16, examples=13),
        Needle(texts, lengths=(72,), depths=(0.5,), each=13),
    ]
    table = run_trials(smollm2, trials=trials)
    rows = table.details["trials"]
    for name, least in (("induction", 0.6), ("retrieval", 0.6), ("previous_random", 0.6)):
        best = rows[rows["column"] == name].sort_values("value").iloc[-1]
        assert best["value"] > least > 5 * best["baseline"]
        assert best["p_adjusted"] < 0.05
    assert Head("dec", 18, 6) in table.rank("induction")[:3]
    assert Head("dec", 18, 6) in table.rank("retrieval")[:3]
    right = table.details["trial_models"]["value"].iloc[0]
    assert right > 0.9
