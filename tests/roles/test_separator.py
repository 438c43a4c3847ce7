"""Heads that rest: always, or where a word does not bear their relation."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from role_frames import halves
from role_frames import table as frame_table

from headcount.records.heads import Head
from headcount.survey.roles.resting import NoOp, Separator


def test_the_whole_interval_must_reach_the_share() -> None:
    found = Separator().judge(frame_table({"separator": [0.7, 0.62]}))
    assert [verdict.head for verdict in found] == [Head("enc", 0, 0)]
    assert (found[0].role, found[0].label, found[0].n) == ("separator", "separators", 12)
    assert found[0].evidence == "mass on separators 0.70 [0.65, 0.75]"
    assert len(Separator(share=0.5).judge(frame_table({"separator": [0.7, 0.62]}))) == 2


def test_the_evidence_has_the_other_arguments_where_they_were_measured() -> None:
    layers = pd.DataFrame(
        {"stack": ["enc"], "layer": [0], "target": ["separator"], "share": [0.042]}
    )
    columns = {"separator": [0.7, 0.1], "separator_to_separator": [0.9, 0.2]}
    columns["separator_breadth"] = [0.15, 0.5]
    verdict = Separator().judge(frame_table(columns, noop_layers=layers))[0]
    assert verdict.evidence.endswith(
        "from separators themselves 0.90, their breadth 0.15 of the largest, "
        "|dL/dα| there 0.04 of that on other tokens in its layer"
    )


def test_resting_on_the_first_token_is_a_sink() -> None:
    ours = {"first": [0.8, 0.2], "separator": [0.1, 0.7]}
    ends, first = Separator().judge(frame_table(ours))
    assert (first.role, first.label) == ("sink", "the first token")
    twin = frame_table({"first": [0.3, 0.1], "separator": [0.2, 0.4]})
    assert Separator().chance(twin, first) == 0.3
    assert Separator().chance(twin, ends) == 0.4


def test_a_treebank_adds_heads_that_rest_now_and_then() -> None:
    ours = frame_table({"separator": [0.1, 0.1]}, relations=relations(), rest_by_relation=rests())
    (verdict,) = Separator().judge(ours)
    assert verdict.label == "rests on separators without det dep->head"
    assert Separator().chance(ours, verdict) == pytest.approx(0.3)
    assert math.isnan(Separator().chance(frame_table({"separator": [0.1, 0.1]}), verdict))


def test_no_interval_no_verdict() -> None:
    bare = frame_table({"separator": [0.9, 0.9]})
    bare.low = bare.low.drop(columns="separator")
    assert Separator().judge(bare) == []


def relations(lead: float = 0.3, direction: str = "dep->head") -> pd.DataFrame:
    rows = [{"accuracy": 0.4 + lead, "baseline": 0.4}, {"accuracy": 0.45, "baseline": 0.4}]
    return halves(rows, rows, relation="det", direction=direction)


def rests(difference: float = -0.3, p: float = 0.001, rest: str = "separator") -> pd.DataFrame:
    row = {
        "value": 0.1, "baseline": 0.1 - difference, "difference": difference, "p": p,
        "difference_low": difference - 0.02, "difference_high": difference + 0.02,
    }  # fmt: skip
    return halves([row, row], [row, row], relation="det", direction="dep->head", rest=rest)


def test_a_head_that_follows_a_relation_rests_without_it() -> None:
    found = NoOp().judge(frame_table(relations=relations(), rest_by_relation=rests()))
    assert [verdict.head.index for verdict in found] == [0]  # the other follows nothing
    verdict = found[0]
    assert (verdict.role, verdict.label) == (
        "separator", "rests on separators without det dep->head",
    )  # fmt: skip
    assert (verdict.value, verdict.low, verdict.high) == pytest.approx((0.3, 0.28, 0.32))
    assert verdict.evidence == (
        "det dep->head: mass on separators 0.10 from words that bear it, 0.40 from others, "
        "0.30 [0.28, 0.32] apart"
    )


def test_where_it_rests_is_its_role() -> None:
    found = NoOp().judge(frame_table(relations=relations(), rest_by_relation=rests(rest="first")))
    assert found[0].role == "sink"


@pytest.mark.parametrize(
    ("relation", "rest"),
    [
        (relations(0.05), rests()),
        (relations(), rests(-0.01)),
        (relations(), rests(0.3)),
        (relations(), rests(p=0.2)),
        (relations(direction="head<-dep"), rests()),
    ],
    ids=["follows nothing", "hardly rests", "works there", "chance", "columns"],
)
def test_what_is_no_no_op(relation: pd.DataFrame, rest: pd.DataFrame) -> None:
    assert NoOp().judge(frame_table(relations=relation, rest_by_relation=rest)) == []


def test_each_head_is_asked_about_its_best_relation_alone() -> None:
    better = relations(0.4).assign(relation="obj")
    both = pd.concat([relations(0.3), better], ignore_index=True)
    assert NoOp().judge(frame_table(relations=both, rest_by_relation=rests())) == []


def test_the_twin_rests_too_or_not() -> None:
    verdict = NoOp().judge(frame_table(relations=relations(), rest_by_relation=rests()))[0]
    twin = frame_table(relations=relations(), rest_by_relation=rests(-0.02))
    assert NoOp().chance(twin, verdict) == pytest.approx(0.02)
    assert math.isnan(NoOp().chance(frame_table(rest_by_relation=rests(rest="first")), verdict))
