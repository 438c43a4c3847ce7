"""Positional heads: the largest weight sits at one offset, nearly always.

Voita et al., ACL 2019, section 5.1: at least 90% of tokens at one relative position. There is no
author code. The null is a pick among all tokens that could be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headcount import stats
from headcount.heads import Head
from headcount.roles.role import Verdict, best_of
from headcount.table import HeadTable

__all__ = ["Positional"]


@dataclass(frozen=True)
class Positional:
    """Heads that point to one offset.

    `edges` says whether tokens that have no token at that offset, such as the first one for
    offset -1, stay in the denominator ("keep", the strict reading) or leave it ("drop").
    """

    #: The least share of tokens at the offset.
    share: float = 0.9
    edges: Literal["keep", "drop"] = "keep"
    #: The level of the test against chance, Holm over all heads.
    level: float = 0.05
    name = "positional"
    reads = ("best_offset_share", "positions")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads whose share reaches the threshold and is no chance."""
        found = table.details["positions"]
        found = found[found["edges"] == self.edges]
        found = found.assign(p_adjusted=stats.holm(found["p"].to_numpy()))
        held = found[(found["share"] >= self.share) & (found["p_adjusted"] <= self.level)]
        return [_verdict(row) for _, row in held.sort_values("share", ascending=False).iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's most positional head."""
        return best_of(twin, "best_offset_share", verdict.head.stack)


def _verdict(row: pd.Series) -> Verdict:
    label = f"offset {row['offset']:+d}" if row["offset"] else "offset 0"
    interval = f"[{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "positional",
        label,
        float(row["share"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["chance"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{label} for {row['share']:.2f} {interval} of tokens, "
        f"a blind pick {row['chance']:.2f}",
    )
