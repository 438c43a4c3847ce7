"""Ablation as a score: columns, tests, corrections, and what a user may do wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_subjects
from small_tasks import KINDS, TEXTS
from watching import told

from headcount import tasks
from headcount.errors import StatsError, UsageError
from headcount.importance.ablation import ablation, ablation_costs
from headcount.importance.examples import Interrupted
from headcount.importance.sweeps.interventions import others, sets, single_heads
from headcount.importance.sweeps.sweeping import sweep
from headcount.models.subject import Subject
from headcount.records.journal import Journal
from headcount.records.table import HeadTable
from headcount.rooms.papers.michel import best_single_heads
from headcount.tasks.task import Task
from headcount.wiring import valve

MANY = [f"{text} {place}" for place in range(4) for text in TEXTS]


@pytest.fixture(scope="module")
def subject() -> Subject:
    return tiny_subjects.classifier()


@pytest.fixture(scope="module")
def task() -> Task:
    return tasks.classification([(text, len(text) % 2) for text in MANY])


def test_the_cost_is_what_the_loss_gains(subject: Subject, task: Any) -> None:
    table = ablation(subject, task)
    loss = tasks.classification(task.examples, metric="loss")
    whole = loss.evaluate(subject).value
    for head in subject.heads:
        with valve(subject, {head: 0.0}):
            cost = loss.evaluate(subject).value - whole
        assert table.frame["ablation"][tuple(head)] == pytest.approx(cost, abs=1e-6)
    assert table.column("ablation").unit == "loss"
    assert table.rank("ablation")[0] == max(
        subject.heads, key=lambda head: table.frame["ablation"][tuple(head)]
    )


def test_intervals_and_p_values_are_those_of_compare(subject: Subject, task: Any) -> None:
    table = ablation(subject, task, seed=3)
    found = sweep(subject, task, single_heads(subject.anatomy))
    expected = tasks.compare(found.outcomes, found.baseline, seed=3)
    frame = table.frame
    np.testing.assert_allclose(frame["ablation"], expected.value, atol=1e-12)
    np.testing.assert_allclose(table.low["ablation"], expected.low, atol=1e-12)
    np.testing.assert_allclose(table.high["ablation"], expected.high, atol=1e-12)
    np.testing.assert_array_equal(frame["ablation_p"], expected.p)
    np.testing.assert_array_equal(frame["ablation_p_adjusted"], expected.p_adjusted)
    assert (frame["ablation_p_bh"] <= frame["ablation_p_adjusted"]).all()
    assert (frame["ablation_p"] <= frame["ablation_p_bh"]).all()


def test_a_better_metric_that_falls_is_a_cost_too(subject: Subject, task: Any) -> None:
    table = ablation(subject, task, metric="task")
    whole = task.evaluate(subject).value
    head = subject.heads[2]
    with valve(subject, {head: 0.0}):
        assert table.frame["ablation"].iloc[2] == pytest.approx(
            whole - task.evaluate(subject).value
        )
    assert (table.low["ablation"] <= table.frame["ablation"]).all()
    assert (table.high["ablation"] >= table.frame["ablation"]).all()
    assert table.provenance["settings"]["metric"] == "accuracy"
    assert table.provenance["settings"]["baseline"] == whole


def test_units_have_columns_of_their_own(subject: Subject, task: Any) -> None:
    left = ablation(subject, task, unit="others")
    assert left.names[0] == "ablation_others"
    assert left.column("ablation_others").direction == "lower"
    layers = ablation(subject, task, unit="layer")
    assert layers.frame["ablation_layer"].nunique() == 2
    assert layers.frame.groupby("layer")["ablation_layer"].nunique().tolist() == [1, 1]
    joined = ablation(subject, task).join(left).join(layers)
    assert {"ablation", "ablation_others", "ablation_layer"} <= set(joined.names)


def test_the_best_single_head_of_a_layer(subject: Subject, task: Any) -> None:
    """Chosen and judged on the same examples, and on two halves."""
    table = ablation(subject, task, unit="others")
    frame = table.details["best_single_heads"]
    naive = frame[frame["chosen_on"] == "same examples"]
    for _, row in naive.iterrows():
        costs = table.frame["ablation_others"][row["stack"], row["layer"]]
        assert row["head"] == costs.idxmin()
        assert row["cost"] == pytest.approx(costs.min())
    halves = frame[frame["chosen_on"] == "other half"]
    assert halves["n"].tolist() == [10, 10]
    found = sweep(subject, task, others(subject.anatomy))
    again = best_single_heads(found, subject.heads)
    other = again[again["chosen_on"] == "other half"].reset_index(drop=True)
    np.testing.assert_allclose(other["cost"], halves["cost"], atol=1e-9)


def test_a_head_chosen_by_chance_is_not_judged_by_the_same_chance() -> None:
    """Costs of pure noise look good on the examples they were chosen on, and on no others."""
    noise = np.random.default_rng(0)
    subject = tiny_subjects.encoder()
    task = tasks.custom(list(range(200)), lambda s, examples: [0.0] * len(examples))
    found = sweep(subject, task, others(subject.anatomy), batch_size=200)
    for outcome in found.outcomes:
        outcome.statistics[:, 0] = noise.normal(size=200)
    frame = best_single_heads(found, subject.heads)
    naive, fair = (part["cost"].mean() for _, part in frame.groupby("chosen_on", sort=False))
    assert naive < 0 < fair + 0.1
    assert naive < fair


def test_any_sets_of_heads(subject: Subject, task: Any) -> None:
    found = sweep(subject, task, sets({"ends": "enc.0.0,enc.1.3", "none": []}), metric="task")
    assert ablation_costs(found).value[1] == 0
    with valve(subject, {"enc.0.0": 0.0, "enc.1.3": 0.0}):
        assert found.outcome("ends").value == task.evaluate(subject).value


def test_the_table_is_saved_with_where_it_comes_from(
    subject: Subject, task: Any, tmp_path: Path
) -> None:
    table = ablation(subject, task, unit="others", mode="mean")
    table.save(tmp_path / "run")
    back = HeadTable.load(tmp_path / "run")
    assert back.frame.equals(table.frame)
    assert back.provenance["settings"]["mode"] == "mean"
    assert len(back.details["best_single_heads"]) == 4


def test_ctrl_c_gives_a_table_of_what_was_done(subject: Subject, task: Any, tmp_path: Path) -> None:
    def stop(done: int, total: int, title: str) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    path = tmp_path / "journal.jsonl"
    with Journal.open(path, {}) as journal, pytest.raises(Interrupted) as stopped, told(stop):
        ablation(subject, task, batch_size=2, journal=journal)
    part = stopped.value.table
    assert part.frame["ablation"].notna().all()
    assert part.notes["ablation"].startswith("interrupted after ")
    assert " of 20 examples" in part.notes["ablation"]
    with Journal.open(path, {}) as journal:
        resumed = ablation(subject, task, batch_size=2, journal=journal)
    assert resumed.frame.equals(ablation(subject, task, batch_size=2).frame)
    assert "ablation" not in resumed.notes


# --- bad input ----------------------------------------------------------------------------------


def test_too_few_examples_leave_costs_without_tests(subject: Subject, task: Any) -> None:
    table = ablation(subject, task.part([0, 1]))
    assert table.frame["ablation"].notna().all()
    assert table.frame["ablation_p"].isna().all()
    assert table.notes["ablation"].startswith("not tested: A two-sided paired test on 2 sentences")


def test_a_constant_metric_is_told() -> None:
    subject = tiny_subjects.encoder()
    task = tasks.custom(MANY, lambda s, texts: [1.0] * len(texts))
    table = ablation(subject, task)
    assert (table.frame["ablation"] == 0).all()
    assert table.notes["ablation"] == (
        "nothing that was ablated changes the score (1), which may be too coarse or constant"
    )


def test_a_metric_without_a_value_is_an_error() -> None:
    subject, _ = KINDS["similarity"]()
    task = tasks.similarity([(text, "The same.", 1.0) for text in MANY])
    message = r"The spearman of the model as it is cannot be told on .*; use another metric"
    with pytest.raises(StatsError, match=message):
        ablation(subject, task, metric="task")


def test_a_value_lost_by_one_ablation_is_na(subject: Subject, task: Any) -> None:
    found = sweep(subject, task, single_heads(subject.anatomy), metric="task")
    found.outcomes[1].statistics[:] = 0.0
    costs = ablation_costs(found)
    assert np.isnan(costs.value[1])
    assert not np.isnan(costs.value[0])
    assert "NA where the accuracy is undefined after the ablation" in costs.notes


def test_units_that_there_are_not_are_refused(subject: Subject, task: Any) -> None:
    with pytest.raises(
        UsageError, match="The unit of ablation is 'neuron'; choose head, others or"
    ):
        ablation(subject, task, unit="neuron")  # type: ignore[arg-type]
