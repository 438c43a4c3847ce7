"""Duplicate-token heads: they look at the same token elsewhere in the text.

Wang et al. 2023, section 3, on random tokens said twice. The paper draws no line; the threshold
is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Duplicate"]


@dataclass(frozen=True)
class Duplicate:
    """Heads whose mean weight on the other occurrence of a token is high."""

    least: float = 0.3
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "duplicate"
    reads = ("duplicate", ANSWERS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that find the token again."""
        rows = passed(table, "duplicate", least=self.least, level=self.level)
        return tried(
            rows,
            self.name,
            lambda row: "same token",
            lambda row: plain_words("the same token elsewhere", row),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "duplicate", verdict.head.stack)
