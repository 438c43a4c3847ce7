"""Argument heads: they link a predicate and a distant argument, more than the same distance does.

Kovaleva et al., EMNLP 2019, section 4.1: two heads of BERT stood out, above the 99th percentile of
all heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.heads import Head
from headcount.roles.confirmed import confirmed
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["Arguments"]

_KEY = ("stack", "layer", "head", "link")


@dataclass(frozen=True)
class Arguments:
    """Heads that stand out on one half of the sentences and hold on the other."""

    #: How many times the attention of the same pairs elsewhere in the sentence.
    times: float = 2.0
    #: Whether only heads above the 99th percentile are taken, as the paper does.
    outliers: bool = True
    #: The level of the test against pairs elsewhere, Holm over all heads and directions.
    level: float = 0.05
    name = "argument"
    reads = ("arguments",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and direction that holds, the strongest first."""
        held = confirmed(table.details["arguments"], _KEY, self._stands_out, self._holds)
        return [_verdict(row) for _, row in held.sort_values("value", ascending=False).iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gives the same link."""
        frame = twin.details["arguments"]
        rows = frame[
            (frame["split"] == "report")
            & (frame["stack"] == verdict.head.stack)
            & (frame["link"] == verdict.label)
        ]
        return float(rows["value"].max()) if len(rows) else math.nan

    def _stands_out(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & rows["outlier"] if self.outliers else high

    def _holds(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & (rows["p_adjusted"] <= self.level)


def _verdict(row: pd.Series) -> Verdict:
    figures = f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "argument",
        str(row["link"]),
        float(row["value"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{row['link']} {figures}, the same pairs elsewhere {row['baseline']:.2f}",
    )
