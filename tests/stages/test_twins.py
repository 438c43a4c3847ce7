"""Random twins beside the model: their figures, their mean, their messages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tiny_subjects import encoder

from headcount.bundle import sample
from headcount.errors import UsageError
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.passes import Manner, Programme, beside, check_control, twin_tables
from headcount.survey.roles.catalogue import all_roles
from headcount.survey.survey import SurveyOptions, planned, read_corpora

READS = frozenset(name for role in all_roles() for name in role.reads)


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
    beside(ours, [table([0.3, 0.5], selected=0), table([0.2, 0.1], selected=1)])
    found = ours.details["relations"].groupby("split")["control"].first()
    assert found["report"] == pytest.approx((0.3 + 0.1) / 2)
    assert found["all"] == pytest.approx((0.5 + 0.2) / 2)


def test_every_column_of_the_twins_is_summed_up() -> None:
    ours = table([0.9, 0.2], selected=0)
    beside(ours, [table([0.3, 0.5], selected=0)])
    (row,) = ours.details["control"].to_dict("records")
    assert (row["column"], row["stack"], row["twin"]) == ("rare", "enc", 0)
    assert (row["mean"], row["min"], row["max"]) == (0.4, 0.3, 0.5)


def test_without_twins_nothing_is_added() -> None:
    ours = table([0.9, 0.2], selected=0)
    beside(ours, [])
    assert set(ours.details) == {"relations"}


def test_twins_are_surveyed_as_the_model_is() -> None:
    subject = encoder()
    corpora = read_corpora(None, treebank=sample.path("sample.conllu"), limit=10)
    whole = planned(subject, corpora, Manner(("enc",)), SurveyOptions(reads=READS))
    programme = Programme(whole.passes)
    one, two, again = (
        twin_tables(subject, programme, "random-init", [seed])[0] for seed in (0, 1, 0)
    )
    assert one.names == two.names
    np.testing.assert_array_equal(one.frame, again.frame)
    assert not np.allclose(one.frame["confidence"], two.frame["confidence"], atol=1e-6)


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
