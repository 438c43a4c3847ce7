"""Feature and argument heads: above words that stand alike, above the same pairs elsewhere."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from role_frames import halves
from role_frames import table as frame_table

from headcount.survey.roles.linguistic import Arguments, Features


def looks(select: list[float], report: list[float], **common: object) -> pd.DataFrame:
    usual = {"feature": "noun", "origin": "all", "baseline": 0.1, "against": "any word"}
    usual |= {"value": 0.9}  # the largest decides nothing
    usual |= {"compared_low": 0.0, "compared_high": 1.0, "compared_n": 70}
    rows = ([{"compared": v} for v in part] for part in (select, report))
    return halves(*rows, **{**usual, **common})


def test_a_feature_head_holds_on_both_halves() -> None:
    found = Features().judge(frame_table(features=looks([0.3, 0.3], [0.25, 0.12])))
    assert [(verdict.head.index, verdict.label) for verdict in found] == [(0, "noun")]
    assert found[0].n == 70
    assert found[0].evidence == "attention to a noun 0.25 [0.00, 1.00], to any word 0.10"


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
        "argument->predicate 0.23 [0.00, 1.00], the same pairs elsewhere 0.05"
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
