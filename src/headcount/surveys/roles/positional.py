"""Positional heads: they point to one offset (Voita et al. 2019, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headcount import stats
from headcount.records import HeadTable
from headcount.surveys.roles.role import Verdict, best_of, kind_beside, row_verdicts, value_text

POSITIONAL = kind_beside(__file__, "positional")


# Voita et al., ACL 2019, section 5.1: at least 90% of tokens at one relative position. There is no
# author code. The null is a pick among all tokens that could be seen.


@dataclass(frozen=True)
class Positional:
    """Heads that point to one offset.

    `edges` says whether tokens that have no token at that offset, such as the first one for
    offset -1, stay in the denominator ("keep", the strict reading) or leave it ("drop").
    """

    #: The least share of tokens at the offset, also at the lower end of its interval.
    share: float = 0.9
    edges: Literal["keep", "drop"] = "keep"
    #: The level of the test against chance, Holm over all heads.
    level: float = 0.05
    kind = POSITIONAL
    name = "positional"
    reads = ("best_offset_share", "positions")

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return (("the same offset for a share of", "best_offset_share", self.share),)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads whose share reaches the threshold and is no chance."""
        found = table.details["positions"]
        found = found[found["edges"] == self.edges]
        found = found.rename(columns={"share": "value", "chance": "baseline"})
        found = found.assign(p_adjusted=stats.holm(found["p"].to_numpy()))
        held = found[(found["low"] >= self.share) & (found["p_adjusted"] <= self.level)]
        return row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            _offset,
            lambda row: (
                f"{_offset(row)} for {value_text(row)} of tokens, chance {row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's most positional head."""
        return best_of(twin, "best_offset_share", verdict.head.stack)


def _offset(row: pd.Series) -> str:
    return f"offset {row['offset']:+d}" if row["offset"] else "offset 0"
