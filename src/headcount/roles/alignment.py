"""Alignment heads: cross heads that point to the source token a target token translates.

Garg et al. 2019 while the token is predicted; Chen et al. 2020 (Shift-Att) while it is
read. Neither draws a line: half of the links and 10 points above the diagonal are asked for, the
margin that Voita et al. 2019, section 5.2, ask of syntactic heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Alignment"]

#: Label to column: when a head looks at the source of a token.
WHEN = {"when read": "alignment_read", "when predicted": "alignment"}


@dataclass(frozen=True)
class Alignment:
    """Heads that point to a token's source more often than the diagonal does."""

    least: float = 0.5
    #: How far above the diagonal.
    margin: float = 0.1
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "alignment"
    reads = ("alignment", "alignment_read", ANSWERS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that align, by when they do it."""
        found = [verdict for when in WHEN for verdict in self._judged(table, when)]
        return sorted(found, key=lambda verdict: -verdict.value)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, WHEN[verdict.label], verdict.head.stack)

    def _judged(self, table: HeadTable, when: str) -> list[Verdict]:
        rows = passed(table, WHEN[when], least=self.least, level=self.level, margin=self.margin)

        def words(row: pd.Series) -> str:
            return plain_words(f"the source of a token {when}", row)

        return tried(rows, self.name, lambda row: when, words)
