"""Source-end heads: cross heads that rest on the end of the source sentence.

The sink of cross attention; half of the mass is asked for, a threshold of ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["SourceEnd"]


@dataclass(frozen=True)
class SourceEnd:
    """Heads whose mass is mostly on the source's end token and final punctuation."""

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "source-end"
    reads = ("source_end", ANSWERS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that rest there."""
        rows = passed(table, "source_end", least=self.least, level=self.level)
        return tried(
            rows,
            self.name,
            lambda row: "end of source",
            lambda row: plain_words("the end of the source", row),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "source_end", verdict.head.stack)
