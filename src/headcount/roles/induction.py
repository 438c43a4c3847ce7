"""Induction heads: they look at what followed this token last time, and say it again.

Olsson et al. 2022: prefix matching on random tokens said twice. The paper draws no line; the
threshold is ours. Whether such a head also raises the right token is told in its label.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, head_of, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Induction"]

_EFFECT = "induction_effect"


@dataclass(frozen=True)
class Induction:
    """Heads whose mean weight on the token after the first occurrence is high."""

    least: float = 0.3
    #: The level of the tests, Holm over all heads.
    level: float = 0.05
    name = "induction"
    reads = ("induction", ANSWERS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that match prefixes; the label says which of them copy too."""
        rows = passed(table, "induction", least=self.least, level=self.level)
        effects = _effects(table)
        copying = {
            head_of(row)
            for _, row in passed(table, _EFFECT, least=0.0, level=self.level).iterrows()
        }

        def label(row: pd.Series) -> str:
            return "matches and copies" if head_of(row) in copying else "matches prefixes"

        def words(row: pd.Series) -> str:
            effect = effects.get(head_of(row))
            more = "" if effect is None else f", adds {effect:+.2f} nats to the right token"
            return plain_words("what followed this token before", row) + more

        return tried(rows, self.name, label, words)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "induction", verdict.head.stack)


def _effects(table: HeadTable) -> dict[tuple[str, int, int], float]:
    """What each head adds to the right token, where that was measured."""
    rows = table.details[ANSWERS]
    rows = rows[rows["column"] == _EFFECT]
    return {head_of(row): float(row["value"]) for _, row in rows.iterrows()}
