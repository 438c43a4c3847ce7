"""Retrieval heads: they point at the token that the model copies out of a long text.

Wu et al. 2024, section 2: a retrieval score of 0.1 or more. As in the paper, only a model that does
find the needle can have such heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, MEASURES, measured, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Retrieval"]


@dataclass(frozen=True)
class Retrieval:
    """Heads that point at a needle's tokens while they are copied."""

    least: float = 0.1
    #: The share of the answer that the model itself must get right for the score to mean anything.
    trusted: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "retrieval"
    reads = ("retrieval", ANSWERS, MEASURES)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that retrieve, if the model does."""
        right = measured(table, "needle", "right tokens of the answer")
        if not right >= self.trusted:
            return []
        rows = passed(table, "retrieval", least=self.least, level=self.level)

        def words(row: pd.Series) -> str:
            return (
                plain_words("the token to be copied", row) + f", the model gets {right:.2f} right"
            )

        return tried(rows, self.name, lambda row: "copies from far back", words)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "retrieval", verdict.head.stack)
