"""Verdicts: their words, their frame, and the closed list of roles."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headcount.errors import UsageError
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.roles.role import (
    COLUMNS,
    KINDS,
    Verdict,
    best_of,
    verdict_frame,
    verdicts_of,
)

VERDICT = Verdict(
    Head("enc", 1, 2), "positional", "offset -1", 0.95, 0.94, 0.96, n=100, baseline=0.2,
    p=0.001, p_adjusted=0.01, evidence="0.95 of tokens point to offset -1",
)  # fmt: skip


def test_a_role_that_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no role 'poetic'; there are positional, .*'other'"):
        replace(VERDICT, role="poetic")


def test_the_twin_is_told_only_where_one_was_asked() -> None:
    assert VERDICT.in_words == "0.95 of tokens point to offset -1"
    assert VERDICT.beside(0.125).in_words.endswith(", random twin 0.12")


def test_verdicts_go_to_a_frame_and_back() -> None:
    verdicts = [VERDICT, replace(VERDICT, head=Head("cross", 0, 0), role="rare", control=0.3)]
    frame = verdict_frame(verdicts)
    assert tuple(frame.columns) == COLUMNS
    again = verdicts_of(frame)
    assert again[1] == verdicts[1]
    assert math.isnan(again[0].control)
    assert again[0].beside(0.5) == VERDICT.beside(0.5)


def test_no_verdicts_are_a_frame_with_columns() -> None:
    frame = verdict_frame([])
    assert tuple(frame.columns) == COLUMNS
    assert verdicts_of(frame) == []
    assert frame["value"].dtype == "float64"


def test_the_best_of_a_stack_knows_its_stack() -> None:
    heads = [Head("enc", 0, 0), Head("cross", 0, 0)]
    table = HeadTable.of(heads, {"rare": [0.2, 0.9]})
    assert best_of(table, "rare", "enc") == 0.2
    assert math.isnan(best_of(table, "rare", "dec"))
    assert math.isnan(best_of(table, "common", "enc"))


def test_the_list_is_closed_by_other() -> None:
    assert list(KINDS)[-1] == "other"
