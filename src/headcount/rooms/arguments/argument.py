"""Argument heads: they link predicate and argument (Kovaleva et al. 2019, section 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys import roles

ARGUMENT = roles.kind_beside(__file__, "argument")


# Kovaleva et al., EMNLP 2019, section 4.1: two heads of BERT stood out, above the 99th percentile
# of all heads.


@dataclass(frozen=True)
class Arguments:
    """Heads that exceed the threshold on one half of the sentences, and again on the other."""

    #: How many times the attention of the same pairs elsewhere in the sentence.
    times: float = 2.0
    #: Whether only heads above the 99th percentile are taken, as the paper does.
    outliers: bool = True
    #: The level of the test against pairs elsewhere, Holm over all heads and directions.
    level: float = 0.05
    kind = ARGUMENT
    name = "argument"
    reads = ("arguments",)

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """One verdict for each head and direction that holds, the strongest first."""
        held = roles.confirmed(
            table.details["arguments"], [*roles.HEAD_KEY, "link"], self._stands_out, self._holds
        )
        return roles.row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            lambda row: str(row["link"]),
            lambda row: (
                f"{row['link']} {roles.value_text(row)}, the same pairs elsewhere "
                f"{row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """What the twin's best head gives the same link."""
        rows = roles.reported(twin.details["arguments"], verdict, link=verdict.label)
        return float(rows["value"].max()) if len(rows) else math.nan

    def _stands_out(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & rows["outlier"] if self.outliers else high

    def _holds(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & (rows["p_adjusted"] <= self.level)
