"""Judging: roles read what is there, in the order of the list, beside the mean of the twins."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.surveys.roles.role import KINDS, Verdict, all_roles, best_of, judged, unread

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


@dataclass(frozen=True)
class High:
    """A column above a threshold."""

    column: str
    name: str = "other"
    least: float = 0.5

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def judge(self, table: HeadTable) -> list[Verdict]:
        values = zip(table.heads, table.frame[self.column], strict=True)
        return [Verdict(h, self.name, self.column, v) for h, v in values if v >= self.least]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        return best_of(twin, self.column, verdict.head.stack)


def table(**columns: list[float]) -> HeadTable:
    return HeadTable.of(HEADS, columns)


def test_every_role_of_the_toolkit_is_on_the_list() -> None:
    names = [role.name for role in all_roles()]
    assert set(names) <= set(KINDS)
    assert len(names) == len(set(names))
    assert names == [name for name in KINDS if name in names]
    assert {"positional", "syntactic", "rare"} <= set(names)


def test_a_role_whose_figures_are_missing_is_silent() -> None:
    ours = table(self=[0.9, 0.1], empty=[math.nan, math.nan])
    roles = [High("self"), High("empty"), High("gone")]
    assert [verdict.label for verdict in judged(ours, roles)] == ["self"]
    assert [unread(role, ours) for role in roles] == [[], ["empty"], ["gone"]]


def test_verdicts_stand_in_the_order_of_the_list() -> None:
    ours = table(a=[0.9, 0.9], b=[0.9, 0.1])
    found = judged(ours, [High("a"), High("b", name="sink"), High("b", name="rare")])
    assert [verdict.role for verdict in found] == ["rare", "sink", "other", "other"]


def test_the_control_is_the_mean_of_the_twins() -> None:
    ours = table(a=[0.9, 0.1])
    twins = [table(a=[0.2, 0.4]), table(a=[0.1, 0.0])]
    (verdict,) = judged(ours, [High("a")], twins)
    assert verdict.control == 0.25
    assert math.isnan(judged(ours, [High("a")], [table(b=[1.0, 1.0])])[0].control)
