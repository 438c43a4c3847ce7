"""Alignment heads: when they look, and how far above the diagonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from role_frames import halves
from role_frames import table as frame_table
from trial_tables import trial_table

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.arguments.argument import Arguments
from headcount.rooms.coreference.coreferent_heads import Coreference
from headcount.rooms.features.feature import Features
from headcount.rooms.rarity.rare import Rare
from headcount.rooms.relations.syntactic import Syntactic
from headcount.rooms.trials.recall import Alignment
from headcount.surveys.roles.role import Role

TABLE = trial_table(
    {
        "alignment": {"cross.0.0": (0.2, 0.4, 1.0), "cross.3.1": (0.6, 0.4, 0.001)},
        "alignment_read": {
            "cross.0.0": (0.85, 0.4, 0.001),
            "cross.3.1": (0.45, 0.4, 0.01),  # below half
            "cross.0.2": (0.55, 0.48, 0.001),  # hardly above the diagonal
        },
    }
)


def test_heads_and_when_they_look() -> None:
    first, second = Alignment().judge(TABLE)
    assert (first.head, first.label) == (Head("cross", 0, 0), "when read")
    assert (second.head, second.label) == (Head("cross", 3, 1), "when predicted")
    assert first.evidence == (
        "the source of a token when read 0.85 [0.80, 0.90], the diagonal 0.40"
    )


def test_thresholds_are_fields() -> None:
    assert len(Alignment(margin=0.0).judge(TABLE)) == 3
    assert len(Alignment(least=0.7).judge(TABLE)) == 1


def test_the_twin_is_asked_the_same_question() -> None:
    twin = trial_table(
        {"alignment": {"cross.0.0": (0.1, 0, 1)}, "alignment_read": {"cross.0.0": (0.2, 0, 1)}}
    )
    read, predicted = Alignment().judge(TABLE)
    assert (Alignment().chance(twin, read), Alignment().chance(twin, predicted)) == (0.2, 0.1)


# --- Coreference heads --------------------------------------------------------------------------


def frame(select: list[float], report: list[float], **common: object) -> pd.DataFrame:
    usual = {
        "kind": "all",
        "against": "head match",
        "baseline": 0.5,
        "selected": False,
        "texts": 20,
    }
    return halves(
        [{"accuracy": value} for value in select], [{"accuracy": value} for value in report],
        **{**usual, **common},
    )  # fmt: skip


def test_a_head_must_lead_on_both_halves() -> None:
    found = Coreference().judge(frame_table(coreference=frame([0.6, 0.52], [0.61, 0.7])))
    assert [(verdict.head, verdict.label) for verdict in found] == [
        (Head("enc", 0, 0), "antecedents")
    ]
    found = Coreference().judge(frame_table(coreference=frame([0.6, 0.6], [0.54, 0.7])))
    assert [verdict.head.index for verdict in found] == [1]


def test_a_lead_by_chance_is_none() -> None:
    rows = frame([0.7, 0.7], [0.7, 0.7], p_adjusted=0.2)
    assert Coreference().judge(frame_table(coreference=rows)) == []
    assert Coreference(level=0.3).judge(frame_table(coreference=rows)) != []


def test_thresholds_and_baseline_are_fields() -> None:
    near = frame([0.6, 0.6], [0.6, 0.6], against="nearest", baseline=0.2)
    both = pd.concat([frame([0.6, 0.6], [0.6, 0.6]), near], ignore_index=True)
    assert len(Coreference(margin=0.2).judge(frame_table(coreference=both))) == 0
    assert (
        len(Coreference(against=("nearest",), margin=0.2).judge(frame_table(coreference=both))) == 2
    )


def test_every_rule_must_be_beaten() -> None:
    near = frame([0.6, 0.9], [0.6, 0.9], against="nearest", baseline=0.7)
    strings = frame([0.6, 0.9], [0.6, 0.9], baseline=0.0)
    (verdict,) = Coreference().judge(frame_table(coreference=pd.concat([strings, near])))
    assert (verdict.head.index, verdict.baseline) == (1, 0.7)


def test_the_evidence_names_every_baseline() -> None:
    near = frame([0.6, 0.5], [0.61, 0.5], against="nearest", baseline=0.415, kind="pronoun")
    own = frame([0.6, 0.5], [0.61, 0.5], kind="pronoun")
    verdict = Coreference().judge(frame_table(coreference=pd.concat([near, own])))[0]
    assert verdict.evidence == (
        "antecedents of pronoun mentions 0.61 [0.61, 0.61], nearest 0.41, head match 0.50"
    )
    assert (verdict.n, verdict.baseline, verdict.p_adjusted) == (50, 0.5, 0.01)


def test_the_twin_answers_the_same_question() -> None:
    verdict = Coreference().judge(frame_table(coreference=frame([0.6, 0.5], [0.61, 0.5])))[0]
    twin = frame([0.3, 0.2], [0.25, 0.2])
    twin["selected"] = twin["head"] == 0
    assert Coreference().chance(frame_table(coreference=twin), verdict) == 0.25
    other = frame_table(coreference=twin.assign(kind="proper"))
    assert math.isnan(Coreference().chance(other, verdict))


def test_one_half_alone_claims_nothing() -> None:
    rows = frame([0.9, 0.9], [0.9, 0.9])
    assert Coreference().judge(frame_table(coreference=rows[rows["split"] == "report"])) == []


def test_pronouns_between_two_names_tell_their_bias() -> None:
    rows = frame([0.7, 0.5], [0.71, 0.5], against="nearest", bias=1.24)
    both = {"coreference": frame([0.5, 0.5], [0.5, 0.5]), "pronoun_choice": rows}
    (verdict,) = Coreference().judge(frame_table(**both))
    assert verdict.role == "coreference"
    assert verdict.evidence == (
        "pronoun between two names 0.71 [0.71, 0.71], nearest 0.50, bias 1.24"
    )
    twin = both | {"pronoun_choice": rows.assign(selected=rows["head"] == 1, accuracy=0.4)}
    assert Coreference().chance(frame_table(**twin), verdict) == 0.4


# --- Feature and argument heads -----------------------------------------------------------------


def looks(select: list[float], report: list[float], **common: object) -> pd.DataFrame:
    usual = {"feature": "noun", "origin": "all", "baseline": 0.1, "against": "any word"}
    usual |= {"value": 0.9}  # the largest decides nothing
    usual |= {"compared_n": 70}
    rows = ([{"compared": v} for v in part] for part in (select, report))
    return halves(*rows, **{**usual, **common})


def test_a_feature_head_holds_on_both_halves() -> None:
    found = Features().judge(frame_table(features=looks([0.3, 0.3], [0.25, 0.12])))
    assert [(verdict.head.index, verdict.label) for verdict in found] == [(0, "noun")]
    assert found[0].n == 70
    assert found[0].evidence == "attention to a noun 0.25 [0.25, 0.25], to any word 0.10"


@pytest.mark.parametrize(
    "frame",
    [
        looks([0.3, 0.3], [0.3, 0.3], p_adjusted=0.2),
        looks([0.3, 0.3], [0.3, 0.3], origin="first"),
        looks([0.3, 0.3], [0.3, 0.3], baseline=0.25),
        looks([0.04, 0.04], [0.04, 0.04], baseline=0.01),
        looks([0.3, 0.3], [0.3, 0.3], baseline=math.nan),
    ],
    ids=["chance", "[CLS] alone", "no more than others", "little", "no baseline"],
)
def test_what_is_no_feature_head(frame: pd.DataFrame) -> None:
    assert Features().judge(frame_table(features=frame)) == []


def test_the_twin_looks_at_the_same_kind_of_word() -> None:
    verdict = Features().judge(frame_table(features=looks([0.3, 0.1], [0.25, 0.1])))[0]
    twin = frame_table(features=looks([0.3, 0.3], [0.21, 0.22], baseline=0.2))
    assert Features().chance(twin, verdict) == pytest.approx(1.1 * verdict.baseline)
    other = frame_table(features=looks([0.1, 0.1], [0.06, 0.07], feature="verb"))
    assert math.isnan(Features().chance(other, verdict))


def links(outlier: bool = True, report: float = 0.23, **common: object) -> pd.DataFrame:
    select = [
        {"value": 0.25, "compared": 0.25, "outlier": outlier},
        {"value": 0.1, "compared": 0.1},
    ]
    judged = [{"value": report, "compared": report}, {"value": 0.1, "compared": 0.1}]
    usual = {"link": "argument->predicate", "baseline": 0.05, "outlier": False}
    return halves(select, judged, **{**usual, **common})


def test_an_argument_head_stands_out_and_holds() -> None:
    verdict = Arguments().judge(frame_table(arguments=links()))[0]
    assert (verdict.head.index, verdict.label) == (0, "argument->predicate")
    assert verdict.evidence == (
        "argument->predicate 0.23 [0.23, 0.23], the same pairs elsewhere 0.05"
    )
    assert Arguments().chance(frame_table(arguments=links(report=0.02)), verdict) == 0.1


@pytest.mark.parametrize(
    "frame",
    [links(False), links(report=0.09), links(p_adjusted=0.2), links(baseline=0.2)],
    ids=["one of many", "not on the other half", "chance", "distance alone"],
)
def test_what_is_no_argument_head(frame: pd.DataFrame) -> None:
    assert Arguments().judge(frame_table(arguments=frame)) == []


def test_outliers_are_a_field() -> None:
    assert len(Arguments(outliers=False).judge(frame_table(arguments=links(False)))) == 2


# --- The rare-word role -------------------------------------------------------------------------


HEADS = [Head("enc", 0, n) for n in range(3)]


def table() -> HeadTable:
    about = {"stack": "enc", "layer": 0, "head": range(3), "n": 700, "low": 0.5, "high": 0.9}
    one = pd.DataFrame(
        {**about, "target": "rare", "share": [0.5, 0.3, 0.1], "chance": 0.1, "uncommon": 0.2}
    ).assign(p=1.0, p_uncommon=1.0)
    two = one.assign(target="rare_two", share=[0.7, 0.55, 0.2], chance=0.25, uncommon=0.4)
    two = two.assign(p=[1e-9, 1e-9, np.nan], p_uncommon=[1e-9, 0.2, np.nan])
    details = {"rarity": pd.concat([one, two], ignore_index=True)}
    return HeadTable.of(HEADS, {"rare_two": [0.7, 0.55, 0.2]}, details=details)


def test_a_share_and_a_test_make_the_role() -> None:
    first, second = Rare(above="chance").judge(table())
    assert (str(first.head), str(second.head)) == ("enc.0.0", "enc.0.1")
    assert (first.value, first.baseline, first.n) == (0.7, 0.25, 700)
    assert first.p_adjusted == 2e-9
    assert first.evidence == (
        "one of the two rarest tokens 0.70 [0.50, 0.90], the rarest 0.50, chance 0.25, "
        "among uncommon tokens 0.40"
    )


def test_a_share_that_uncommon_tokens_explain_is_refused() -> None:
    (verdict,) = Rare().judge(table())
    assert (str(verdict.head), verdict.baseline) == ("enc.0.0", 0.4)


def test_counts_of_the_text_itself_judge_nothing() -> None:
    own = table()
    own.details["rarity"]["counts"] = "the corpus"
    assert Rare().judge(own) == []
    assert len(Rare(own_text=True).judge(own)) == 1
    own.details["rarity"]["counts"] = "its training text"
    assert Rare().judge(own)[0].evidence.endswith("0.40, counts of its training text")


def test_rare_thresholds_are_fields() -> None:
    assert Rare(share=0.6).judge(table()) == []  # the lower end is 0.5
    assert Rare(times=2.5).judge(table()) == []
    assert len(Rare(level=0.3).judge(table())) == 2


def test_the_twin_answers_with_its_best_head() -> None:
    verdict = Rare().judge(table())[0]
    assert Rare().chance(table(), verdict) == 0.7


# --- The syntactic role -------------------------------------------------------------------------


HEADS_SYNTACTIC = [Head("enc", 0, 0), Head("enc", 0, 1)]


def row(split: str, **changes: Any) -> dict[str, Any]:
    base = {
        "stack": "enc", "layer": 0, "head": 1, "relation": "nsubj", "direction": "dep->head",
        "split": split, "n": 400, "accuracy": 0.71, "low": 0.68, "high": 0.74, "baseline": 0.45,
        "offset": 1.0, "p": 1e-6, "p_adjusted": 1e-4, "p_bh": 1e-5, "selected": True,
    }  # fmt: skip
    return base | changes


def table_syntactic(*rows: dict[str, Any]) -> HeadTable:
    return HeadTable.of(HEADS_SYNTACTIC, {}, details={"relations": pd.DataFrame(rows)})


def both(**changes: Any) -> HeadTable:
    return table_syntactic(row("select", **changes), row("report", **changes))


def test_a_verdict_in_words() -> None:
    role: Role = Syntactic()
    (verdict,) = role.judge(both())
    assert verdict.head == Head("enc", 0, 1)
    assert verdict.label == "nsubj dep->head"
    assert (verdict.value, verdict.baseline, verdict.n) == (0.71, 0.45, 400)
    assert verdict.evidence == "nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45"
    twin = both(accuracy=0.22)
    assert str(verdict.beside(role.chance(twin, verdict))) == (
        "enc.0.1 syntactic: nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45, "
        "random twin 0.22"
    )


def test_a_twin_that_lacks_the_relation() -> None:
    (verdict,) = Syntactic().judge(both())
    assert math.isnan(Syntactic().chance(both(relation="det"), verdict))


@pytest.mark.parametrize(
    ("changes", "role", "holds"),
    [
        ({"accuracy": 0.45, "baseline": 0.35}, Syntactic(), True),
        ({"accuracy": 0.44, "baseline": 0.35}, Syntactic(), False),
        ({"accuracy": 0.44, "baseline": 0.35}, Syntactic(margin=0.05), True),
        ({"accuracy": 0.44, "baseline": 0.42}, Syntactic(relative=True), False),
        ({"accuracy": 0.47, "baseline": 0.42}, Syntactic(relative=True), True),
        ({"p_adjusted": 0.06}, Syntactic(), False),
        ({"p_adjusted": 0.06}, Syntactic(level=0.1), True),
        ({"p_adjusted": math.nan}, Syntactic(), False),
        ({"p_adjusted": math.nan}, Syntactic(level=None), True),
        ({"n": 49}, Syntactic(), False),
        ({"n": 50}, Syntactic(), True),
        ({"n": 20}, Syntactic(support=40), True),
        ({"relation": "punct"}, Syntactic(), False),
        ({"relation": "all"}, Syntactic(), False),
        ({"relation": "punct"}, Syntactic(without=frozenset()), True),
    ],
)
def test_thresholds(changes: dict[str, Any], role: Syntactic, holds: bool) -> None:
    assert bool(role.judge(both(**changes))) is holds


def test_it_must_hold_on_both_halves() -> None:
    weak = {"accuracy": 0.5, "low": 0.46}
    assert not Syntactic().judge(table_syntactic(row("select", **weak), row("report")))
    assert not Syntactic().judge(table_syntactic(row("select"), row("report", **weak)))
    assert not Syntactic().judge(table_syntactic(row("report")))
    assert not Syntactic().judge(table_syntactic(row("all")))


def test_the_clearest_comes_first_and_a_head_may_have_several() -> None:
    found = table_syntactic(
        *(row(split, relation="det", accuracy=0.6) for split in ("select", "report")),
        *(row(split, relation="obj", accuracy=0.9) for split in ("select", "report")),
        *(row(split, head=0, accuracy=0.8) for split in ("select", "report")),
    )
    verdicts = Syntactic().judge(found)
    assert [verdict.label for verdict in verdicts] == [
        "obj dep->head", "nsubj dep->head", "det dep->head",
    ]  # fmt: skip
