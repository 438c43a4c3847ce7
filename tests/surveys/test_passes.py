"""Programmes: passes become one table, and can be run again on another model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_subjects
from tiny_subjects import encoder
from tiny_tokenizers import ENGLISH, PAIRS
from watching import told

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.trials.alignment import Pairs, SinkTrial
from headcount.rooms.trials.needle import Needle
from headcount.rooms.trials.repeats import Copying, Repeats
from headcount.rooms.twins.twin import add_control, check_control, twin_tables
from headcount.surveys.passes import PassOptions, SurveyPlan, run_trials, trials_for
from headcount.surveys.roles.role import all_roles
from headcount.surveys.surveying import SurveyOptions, plan_survey, read_corpora, survey

READS = frozenset(name for role in all_roles() for name in role.reads)

TREES = sample.path("sample.conllu")


def programme(subject: Subject, *texts: str) -> SurveyPlan:
    corpora = read_corpora([*texts] or None, treebank=TREES, limit=12)
    found = plan_survey(subject, corpora, SurveyOptions(PassOptions(("enc",)), reads=READS))
    return SurveyPlan(found.passes)


def test_every_corpus_is_told() -> None:
    subject = encoder()
    table = programme(subject, "Rain fell.", "It stopped.").run(subject)
    assert table.provenance["corpus"] == "texts in hand"
    assert set(table.provenance["corpora"]) == {"texts in hand", str(TREES)}
    counts = table.provenance["corpora"][str(TREES)]["counts"]
    assert counts["sentences"] == 12
    assert "relations" in table.details


def test_the_columns_come_from_the_text() -> None:
    subject = encoder()
    two = programme(subject, "Rain fell.", "It stopped.").run(subject)
    corpora = read_corpora(["Rain fell.", "It stopped."])
    alone = plan_survey(subject, corpora, SurveyOptions(PassOptions(("enc",)))).run(subject)
    np.testing.assert_array_equal(two.frame[alone.names], alone.frame)


def test_a_programme_can_be_run_again() -> None:
    subject = encoder()
    first = programme(subject)
    spare = first.again()
    one, other = first.run(subject), spare.run(subject)
    np.testing.assert_array_equal(one.frame, other.frame)
    assert one.details["relations"].equals(other.details["relations"])


def test_stages_are_told() -> None:
    subject, seen = encoder(), []
    with told(lambda *step: seen.append(step)):
        programme(subject).run(subject, " of the twin")
    assert seen[0][2] == "Surveying of the twin"
    assert seen[-1] == (12, 12, "Surveying of the twin")


# --- Random twins beside the model --------------------------------------------------------------


def relations(accuracy: list[float], selected: int) -> pd.DataFrame:
    rows = [
        {"stack": "enc", "layer": 0, "head": n, "relation": "obj", "direction": "dep->head",
         "split": split, "accuracy": value, "selected": n == selected and split != "all"}
        for split in ("select", "report", "all")
        for n, value in enumerate(accuracy)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def table(accuracy: list[float], selected: int) -> HeadTable:
    heads = [Head("enc", 0, n) for n in range(len(accuracy))]
    details = {"relations": relations(accuracy, selected)}
    return HeadTable.of(heads, {"rare": accuracy}, details=details)


def test_relations_have_the_twins_chosen_head_beside_them() -> None:
    ours = table([0.9, 0.2], selected=0)
    add_control(ours, [table([0.3, 0.5], selected=0), table([0.2, 0.1], selected=1)])
    found = ours.details["relations"].groupby("split")["control"].first()
    assert found["report"] == pytest.approx((0.3 + 0.1) / 2)
    assert found["all"] == pytest.approx((0.5 + 0.2) / 2)


def test_every_column_of_the_twins_is_summed_up() -> None:
    ours = table([0.9, 0.2], selected=0)
    add_control(ours, [table([0.3, 0.5], selected=0)])
    (row,) = ours.details["control"].to_dict("records")
    assert (row["column"], row["stack"], row["twin"]) == ("rare", "enc", 0)
    assert (row["mean"], row["min"], row["max"]) == (0.4, 0.3, 0.5)


def test_without_twins_nothing_is_added() -> None:
    ours = table([0.9, 0.2], selected=0)
    add_control(ours, [])
    assert set(ours.details) == {"relations"}


def test_twins_are_surveyed_as_the_model_is() -> None:
    subject = encoder()
    corpora = read_corpora(None, treebank=sample.path("sample.conllu"), limit=10)
    whole = plan_survey(subject, corpora, SurveyOptions(PassOptions(("enc",)), reads=READS))
    programme = SurveyPlan(whole.passes)
    one, two, again = (
        twin_tables(subject, programme, "random-init", [seed])[0] for seed in (0, 1, 0)
    )
    assert one.names == two.names
    np.testing.assert_array_equal(one.frame, again.frame)
    assert not np.allclose(one.frame["confidence"], two.frame["confidence"], atol=1e-6)


def test_a_twin_is_not_asked_what_no_rule_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Copying, "__call__", lambda *_: pytest.fail("a twin copied"))
    trials = (Repeats(length=8), Copying(), Needle(sample.sentences(), lengths=(128,)))
    (twin,) = twin_tables(WRITER, SurveyPlan((), trials), "random-init", [0])
    assert {"induction", "retrieval"} <= set(twin.names)
    assert "induction_effect" not in twin.names
    assert "trial_models" in twin.details  # there, for roles that read it


@pytest.mark.parametrize(
    ("control", "seeds", "message"),
    [
        ("shuffled", [0], "no control 'shuffled'; choose random-init or random-but-embeddings"),
        ("random-init", [], "The control has no seed"),
    ],
)
def test_a_control_that_is_none_is_refused(control: str, seeds: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_control(control, seeds)


# --- Which trials are run on which model, and the table they give -------------------------------


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


def test_progress_is_told_after_each_trial() -> None:
    seen: list[tuple[int, int, str]] = []
    trials = [Repeats(length=6, examples=2), Copying(Repeats(length=6, examples=2))]
    with told(lambda *step: seen.append(step)):
        run_trials(WRITER, trials=trials)
    assert seen == [(1, 2, "Trials"), (2, 2, "Trials")]


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
