"""Syntactic heads: they point along a dependency more often than any fixed offset does.

Voita et al., ACL 2019, section 5.2: at least 10% above the most frequent relative position, which
we read as points (their Table 1 fits that); Clark et al. 2019, Table 1. There is no author code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.heads import Head
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["Syntactic"]

_KEY = ["stack", "layer", "head", "relation", "direction"]
# Accuracies are ratios of counts: 0.45 - 0.35 must reach 0.10.
_SLACK = 1e-9


@dataclass(frozen=True)
class Syntactic:
    """Heads that follow a relation in a direction: found on one half of the sentences, then
    confirmed on the other.
    """

    #: How far above the offset, in points, or as a share of the offset's accuracy.
    margin: float = 0.10
    relative: bool = False
    #: The level of the paired test, Holm over all heads; None asks for no test, as Voita did.
    level: float | None = 0.05
    #: The fewest arcs of a relation, on both halves together.
    support: int = 100
    #: Not relations that a head can be said to follow.
    without: frozenset[str] = frozenset({"all", "root", "punct"})
    name = "syntactic"
    reads = ("relations",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head, relation and direction that holds, the clearest first."""
        frame = table.details["relations"]
        held = self._holding(frame[~frame["relation"].isin(self.without)])
        lead = (held["accuracy"] - held["baseline"]).sort_values(ascending=False, kind="stable")
        return [_verdict(row) for _, row in held.loc[lead.index].iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same relation, chosen and judged the same way."""
        relation, _, direction = verdict.label.rpartition(" ")
        frame = twin.details["relations"]
        there = frame[
            (frame["split"] == "report")
            & frame["selected"].astype(bool)
            & (frame["stack"] == verdict.head.stack)
            & (frame["relation"] == relation)
            & (frame["direction"] == direction)
        ]
        return float(there["accuracy"].iloc[0]) if len(there) else math.nan

    def _holding(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of `report` that pass there, and passed on `select` before."""
        by_split = {split: rows.set_index(_KEY) for split, rows in frame.groupby("split")}
        if not {"select", "report"} <= by_split.keys():
            return frame.iloc[:0]
        select, report = by_split["select"], by_split["report"]
        found = select.index[self._beats(select)]
        arcs = report["n"] + select["n"].reindex(report.index, fill_value=0)
        keep = self._beats(report) & report.index.isin(found) & (arcs >= self.support)
        if self.level is not None:
            keep &= report["p_adjusted"] <= self.level
        return report[keep].reset_index()

    def _beats(self, rows: pd.DataFrame) -> pd.Series:
        wanted = self.margin * rows["baseline"] if self.relative else self.margin
        return rows["accuracy"] - rows["baseline"] >= wanted - _SLACK


def _verdict(row: pd.Series) -> Verdict:
    label = f"{row['relation']} {row['direction']}"
    figures = f"{row['accuracy']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "syntactic",
        label,
        float(row["accuracy"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{label} {figures}, offset baseline {row['baseline']:.2f}",
    )
