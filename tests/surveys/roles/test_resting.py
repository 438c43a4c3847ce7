"""The positional role: its threshold, its edges, its test."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from role_frames import halves
from role_frames import table as frame_table
from trial_tables import sinks_of, trial_table

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.rooms.resting.separator import NoOp, Separator
from headcount.rooms.resting.sink import Sink
from headcount.rooms.trials.recall import Previous
from headcount.surveys.roles.positional import Positional

HEADS = [Head("enc", 0, n) for n in range(4)]


def table(**changes: list[float]) -> HeadTable:
    keep = {
        "share": [0.95, 0.89, 0.91, np.nan],
        "p": [1e-9, 1e-9, 0.02, np.nan],
    } | changes
    frame = pd.DataFrame(
        {
            "stack": "enc", "layer": 0, "head": range(4), "offset": [-1, 1, 0, 2], "edges": "keep",
            "n": 500, "high": 0.97, "chance": 0.04, **keep,
        }
    )  # fmt: skip
    frame["low"] = frame["share"] - 0.005
    dropped = frame.assign(edges="drop", share=frame["share"] + 0.02, low=frame["low"] + 0.02)
    details = {"positions": pd.concat([frame, dropped], ignore_index=True)}
    return HeadTable.of(HEADS, {"best_offset_share": frame["share"].tolist()}, details=details)


def test_the_threshold_and_the_test_both_count() -> None:
    (verdict,) = Positional().judge(table(p=[1e-9, 1e-9, 0.06, np.nan]))
    assert (str(verdict.head), verdict.label, verdict.n) == ("enc.0.0", "offset -1", 500)
    assert verdict.p_adjusted == pytest.approx(3e-9)
    assert verdict.evidence == "offset -1 for 0.95 [0.94, 0.97] of tokens, chance 0.04"


def test_thresholds_are_fields() -> None:
    assert [verdict.label for verdict in Positional().judge(table())] == ["offset -1", "offset 0"]
    assert len(Positional(share=0.85).judge(table())) == 3
    assert len(Positional(share=0.906).judge(table())) == 1  # 0.91 is not surely above it
    assert len(Positional(level=0.01).judge(table())) == 1


def test_without_the_edges_more_heads_reach_it() -> None:
    found = Positional(edges="drop").judge(table())
    assert [str(verdict.head) for verdict in found] == ["enc.0.0", "enc.0.2", "enc.0.1"]


def test_the_twin_answers_with_its_most_positional_head() -> None:
    verdict = replace(Positional().judge(table())[0], head=Head("enc", 3, 3))
    assert Positional().chance(table(share=[0.1, 0.3, 0.2, np.nan]), verdict) == 0.3


# --- Previous-token heads -----------------------------------------------------------------------


FOUND = trial_table({"previous_random": {"dec.0.0": (0.9, 0.05, 0.001)}})


def test_natural_text_beside_it() -> None:
    survey = HeadTable.of([Head("dec", 0, 0)], {"previous": [0.42]})
    (verdict,) = Previous().judge(FOUND.join(survey))
    assert verdict.evidence == (
        "the token before 0.90 [0.85, 0.95], uniform attention 0.05, on natural text 0.42"
    )
    (alone,) = Previous().judge(FOUND)
    assert "natural" not in alone.evidence


# --- Heads that rest ----------------------------------------------------------------------------


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


def relations(lead: float = 0.3, direction: str = "dep->head", n: int = 60) -> pd.DataFrame:
    rows = [{"accuracy": 0.4 + lead, "baseline": 0.4}, {"accuracy": 0.45, "baseline": 0.4}]
    return halves(rows, rows, relation="det", direction=direction, n=n)


def rests(
    difference: float = -0.3, p: float = 0.001, rest: str = "separator", value: float = 0.1
) -> pd.DataFrame:
    row = {
        "value": value, "baseline": value - difference, "difference": difference, "p": p,
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
        "0.30 [0.28, 0.32] apart, h 0.73"
    )


def test_where_it_rests_is_its_role() -> None:
    found = NoOp().judge(frame_table(relations=relations(), rest_by_relation=rests(rest="first")))
    assert found[0].role == "sink"


@pytest.mark.parametrize(
    ("relation", "rest"),
    [
        (relations(0.05), rests()),
        (relations(n=40), rests()),
        (relations().assign(relation="punct"), rests().assign(relation="punct")),
        (relations(), rests(-0.01)),
        (relations(), rests(-0.06)),
        (relations(), rests(-0.09, value=0.45)),
        (relations(), rests(0.3)),
        (relations(), rests(p=0.2)),
        (relations(direction="head<-dep"), rests()),
    ],
    ids=[
        "follows nothing",
        "too few arcs",
        "punctuation",
        "hardly rests",
        "not surely",
        "no effect to speak of",
        "works there",
        "chance",
        "columns",
    ],
)
def test_what_is_no_no_op(relation: pd.DataFrame, rest: pd.DataFrame) -> None:
    assert NoOp().judge(frame_table(relations=relation, rest_by_relation=rest)) == []


def test_what_places_alone_do_is_no_no_op() -> None:
    # The second head does worse than the offset and shows the same difference: words stand so.
    worse = relations(0.3)
    worse.loc[worse["head"] == 1, "accuracy"] = 0.3
    found = NoOp().judge(frame_table(relations=worse, rest_by_relation=rests()))
    assert found == []
    differs = rests()
    differs.loc[differs["head"] == 1, "difference"] = -0.02
    (verdict,) = NoOp().judge(frame_table(relations=worse, rest_by_relation=differs))
    assert verdict.evidence.endswith("h 0.73, by place alone 0.02")


def test_the_twin_rests_too_or_not() -> None:
    verdict = NoOp().judge(frame_table(relations=relations(), rest_by_relation=rests()))[0]
    twin = frame_table(relations=relations(), rest_by_relation=rests(-0.02))
    assert NoOp().chance(twin, verdict) == pytest.approx(0.02)
    assert math.isnan(NoOp().chance(frame_table(rest_by_relation=rests(rest="first")), verdict))


# --- Sinks --------------------------------------------------------------------------------------


TABLE = trial_table(
    {"sink": {"dec.0.0": (0.9, 0.04, 0.001), "dec.0.1": (0.5, 0.04, 0.001)}},
    sinks=sinks_of(
        {
            "dec.0.0": {"as written": (0.9, 0.99, "the", 0.1), "with BOS": (0.8, 1.0, "<s>", 1.0)},
            "dec.0.1": {"as written": (0.5, 0.3, "the", 0.6), "with BOS": (0.1, 0.0, "the", 0.7)},
        }
    ),
)


def test_which_token_is_the_sink() -> None:
    first, second = Sink().judge(TABLE)
    assert (first.label, second.label) == ("first token", "'the'")
    assert str(first) == (
        "dec.0.0 sink: first token 0.90 [0.85, 0.95], uniform attention 0.04, in 75% of texts, "
        "with BOS 0.80"
    )
    assert second.evidence.endswith("with BOS 0.10")


def test_sink_thresholds_are_fields() -> None:
    assert len(Sink(least=0.6).judge(TABLE)) == 1
    assert Sink().chance(TABLE, Sink().judge(TABLE)[0]) == 0.9


def test_the_line_of_a_sink_moves_with_the_length_of_the_texts() -> None:
    sinks = TABLE.details["sinks"]
    usual = sum(1 / place for place in range(5, 65)) / 60
    windows = TABLE.details | {"sinks": sinks.assign(uniform=usual)}
    short = TABLE.details | {"sinks": sinks.assign(uniform=0.125)}
    line = {
        name: Sink().line(HeadTable.of(TABLE.heads, {}, details=details), details["trials"])
        for name, details in (("windows", windows), ("short", short))
    }
    assert line["windows"].tolist() == pytest.approx([0.3, 0.3])
    assert line["short"].tolist() == pytest.approx([0.57, 0.57], abs=0.005)
    assert len(Sink().judge(HeadTable.of(TABLE.heads, {}, details=short))) == 1
    assert len(Sink(window=None).judge(HeadTable.of(TABLE.heads, {}, details=short))) == 2
