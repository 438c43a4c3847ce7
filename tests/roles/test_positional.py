"""The positional role: its threshold, its edges, its test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.roles.resting import Positional

HEADS = [Head("enc", 0, n) for n in range(4)]


def table(**changes: list[float]) -> HeadTable:
    keep = {
        "share": [0.95, 0.89, 0.91, np.nan],
        "p": [1e-9, 1e-9, 0.02, np.nan],
    } | changes
    frame = pd.DataFrame(
        {
            "stack": "enc", "layer": 0, "head": range(4), "offset": [-1, 1, 0, 2], "edges": "keep",
            "n": 500, "low": 0.9, "high": 0.97, "chance": 0.04, **keep,
        }
    )  # fmt: skip
    dropped = frame.assign(edges="drop", share=frame["share"] + 0.02)
    details = {"positions": pd.concat([frame, dropped], ignore_index=True)}
    return HeadTable.of(HEADS, {"best_offset_share": frame["share"].tolist()}, details=details)


def test_the_threshold_and_the_test_both_count() -> None:
    (verdict,) = Positional().judge(table(p=[1e-9, 1e-9, 0.06, np.nan]))
    assert (str(verdict.head), verdict.label, verdict.n) == ("enc.0.0", "offset -1", 500)
    assert verdict.p_adjusted == pytest.approx(3e-9)
    assert verdict.evidence == "offset -1 for 0.95 [0.90, 0.97] of tokens, a blind pick 0.04"


def test_thresholds_are_fields() -> None:
    assert [verdict.label for verdict in Positional().judge(table())] == ["offset -1", "offset 0"]
    assert len(Positional(share=0.85).judge(table())) == 3
    assert len(Positional(level=0.01).judge(table())) == 1


def test_without_the_edges_more_heads_reach_it() -> None:
    found = Positional(edges="drop").judge(table())
    assert [str(verdict.head) for verdict in found] == ["enc.0.0", "enc.0.2", "enc.0.1"]


def test_the_twin_answers_with_its_most_positional_head() -> None:
    verdict = replace(Positional().judge(table())[0], head=Head("enc", 3, 3))
    assert Positional().chance(table(share=[0.1, 0.3, 0.2, np.nan]), verdict) == 0.3
