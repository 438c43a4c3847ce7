"""Previous-token heads: they look one place back, whatever stands there.

Elhage et al. 2021 and Olsson et al. 2022, on random tokens, where nothing but the place can be
followed; half of the weight is asked for, as Clark et al. 2019, section 3.1, count such heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, head_of, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Previous"]


@dataclass(frozen=True)
class Previous:
    """Heads that put most of their weight on the token before, on random text."""

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "previous"
    reads = ("previous_random", ANSWERS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that look back; the evidence has natural text beside it where known."""
        rows = passed(table, "previous_random", least=self.least, level=self.level)

        def words(row: pd.Series) -> str:
            return plain_words("the token before", row) + _natural(table, row)

        return tried(rows, self.name, lambda row: "token before", words)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "previous_random", verdict.head.stack)


def _natural(table: HeadTable, row: pd.Series) -> str:
    """The survey's figure on natural text."""
    if "previous" not in table.frame:
        return ""
    value = table.head(head_of(row))["previous"]
    return "" if value is None else f", on natural text {value:.2f}"
