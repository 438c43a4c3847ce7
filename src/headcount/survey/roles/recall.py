"""Retrieval heads: they point at the token that the model copies out of a long text.

Wu et al. 2024, section 2: a retrieval score of 0.1 or more. As in the paper, only a model that does
find the needle can have such heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.survey.roles.role import (
    MEASURES,
    TRIALS,
    Verdict,
    best_of,
    head_of,
    passing_rows,
    plain_words,
    trial_figure,
    tried,
)

# --- Duplicate-token heads ----------------------------------------------------------------------
# Wang et al. 2023, section 3, on random tokens said twice. The paper draws no line; the threshold
# is ours.


@dataclass(frozen=True)
class Duplicate:
    """Heads whose mean weight on the other occurrence of a token is high."""

    least: float = 0.3
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "duplicate"
    reads = ("duplicate", TRIALS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that find the token again."""
        rows = passing_rows(table, "duplicate", least=self.least, level=self.level)
        return tried(
            rows,
            self.name,
            lambda row: "same token",
            lambda row: plain_words("the same token elsewhere", row),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "duplicate", verdict.head.stack)


# --- Induction heads ----------------------------------------------------------------------------
# Olsson et al. 2022: prefix matching on random tokens said twice. The paper draws no line; the
# threshold is ours. Whether such a head also raises the right token is told in its label.

_EFFECT = "induction_effect"


@dataclass(frozen=True)
class Induction:
    """Heads whose mean weight on the token after the first occurrence is high."""

    least: float = 0.3
    #: The level of the tests, Holm over all heads.
    level: float = 0.05
    name = "induction"
    reads = ("induction", TRIALS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that match prefixes; the label says which of them copy too."""
        rows = passing_rows(table, "induction", least=self.least, level=self.level)
        effects = _effects(table)
        copying = {
            head_of(row)
            for _, row in passing_rows(table, _EFFECT, least=0.0, level=self.level).iterrows()
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
    rows = table.details[TRIALS]
    rows = rows[rows["column"] == _EFFECT]
    return {head_of(row): float(row["value"]) for _, row in rows.iterrows()}


# --- Retrieval heads ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Retrieval:
    """Heads that point at a needle's tokens while they are copied."""

    least: float = 0.1
    #: The share of the answer that the model itself must get right for the score to mean anything.
    trusted: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "retrieval"
    reads = ("retrieval", TRIALS, MEASURES)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that retrieve, if the model does."""
        right = trial_figure(table, "needle", "right tokens of the answer")
        if not right >= self.trusted:
            return []
        rows = passing_rows(table, "retrieval", least=self.least, level=self.level)

        def words(row: pd.Series) -> str:
            return (
                plain_words("the token to be copied", row) + f", the model gets {right:.2f} right"
            )

        return tried(rows, self.name, lambda row: "copies from far back", words)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "retrieval", verdict.head.stack)
