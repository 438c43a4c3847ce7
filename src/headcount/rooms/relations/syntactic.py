"""Syntactic heads: they follow a dependency (Voita et al. 2019, section 5.2; Clark et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys.roles import (
    HEAD_KEY,
    Verdict,
    confirmed,
    first_of,
    kind_beside,
    reported,
    row_verdicts,
    value_text,
)

SYNTACTIC = kind_beside(__file__, "syntactic")


# Voita et al., ACL 2019, section 5.2: at least 10% above the most frequent relative position, which
# we read as points (their Table 1 fits that); Clark et al. 2019, Table 1. There is no author code.

# Accuracies are ratios of counts: 0.45 - 0.35 must reach 0.10.
_SLACK = 1e-9
#: With so many relations that can be judged, too few arcs are no reason for a remark.
_USUAL = 5


@dataclass(frozen=True)
class Syntactic:
    """Heads that follow a relation in a direction: found on one half of the sentences, then
    confirmed on the other.
    """

    #: How far above the offset, in points, or as a share of the offset's accuracy; on the half
    #: that judges, the lower end of the interval must be so far above.
    margin: float = 0.10
    relative: bool = False
    #: The level of the paired test, Holm over all heads; None asks for no test, as Voita did.
    level: float | None = 0.05
    #: The fewest arcs of a relation, on both halves together.
    support: int = 100
    #: Not relations that a head can be said to follow.
    without: frozenset[str] = frozenset({"all", "root", "punct"})
    kind = SYNTACTIC
    name = "syntactic"
    reads = ("relations",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head, relation and direction that holds, the clearest first."""
        frame = table.details["relations"]
        held = self._holding(frame[~frame["relation"].isin(self.without)])
        lead = (held["accuracy"] - held["baseline"]).sort_values(ascending=False, kind="stable")
        rows = held.loc[lead.index].rename(columns={"accuracy": "value"})
        return row_verdicts(
            rows,
            self.name,
            lambda row: f"{row['relation']} {row['direction']}",
            lambda row: (
                f"{row['relation']} {row['direction']} {value_text(row)}, "
                f"offset baseline {row['baseline']:.2f}"
            ),
        )

    def too_few(self, relations: pd.DataFrame, sentences: int) -> str:
        """A remark where fewer than five relations have arcs enough; empty where they have."""
        rows = relations[(relations["split"] == "all") & ~relations["relation"].isin(self.without)]
        arcs = rows.groupby("relation")["n"].max().nlargest(_USUAL)
        enough = arcs[arcs >= self.support]
        if len(enough) == _USUAL or not len(arcs):
            return ""
        wanted = math.ceil(sentences * self.support / arcs.iloc[-1])
        return (
            f"A syntactic verdict takes {self.support} arcs of its relation, and {sentences:,} "
            f"sentences have so many of {', '.join(enough.index) or 'none'}; the {len(arcs)} most "
            f"frequent ({', '.join(arcs.index)}) would have them in about {wanted:,} sentences."
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same relation, chosen and judged the same way."""
        relation, _, direction = verdict.label.rpartition(" ")
        frame = twin.details["relations"]
        there = reported(frame, verdict, relation=relation, direction=direction)
        return first_of(there.loc[there["selected"].astype(bool), "accuracy"])

    def _holding(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of `report` that pass there, and passed on `select` before."""
        key = [*HEAD_KEY, "relation", "direction"]
        halves = frame[frame["split"].isin(["select", "report"])]
        arcs = halves.groupby(key)["n"].sum().rename("arcs")
        level = math.inf if self.level is None else self.level
        tested = frame["p_adjusted"].fillna(math.inf) <= level
        return confirmed(
            frame.assign(tested=tested).join(arcs, on=key),
            key,
            lambda rows: self._beats(rows, "accuracy"),
            lambda rows: self._beats(rows, "low") & rows["tested"] & (rows["arcs"] >= self.support),
        )

    def _beats(self, rows: pd.DataFrame, figure: str) -> pd.Series:
        wanted = self.margin * rows["baseline"] if self.relative else self.margin
        return rows[figure] - rows["baseline"] >= wanted - _SLACK
