"""Coreference heads: above the baseline on both halves, and by no chance."""

from __future__ import annotations

import math

import pandas as pd
from role_frames import halves
from role_frames import table as frame_table

from headcount.records.heads import Head
from headcount.survey.roles.linguistic import Coreference


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
        "antecedents of pronoun mentions 0.61 [0.00, 1.00], nearest 0.41, head match 0.50"
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
        "pronoun between two names 0.71 [0.00, 1.00], nearest 0.50, bias 1.24"
    )
    twin = both | {"pronoun_choice": rows.assign(selected=rows["head"] == 1, accuracy=0.4)}
    assert Coreference().chance(frame_table(**twin), verdict) == 0.4
