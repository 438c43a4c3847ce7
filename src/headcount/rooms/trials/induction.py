"""Induction heads (Olsson et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys.roles import TRIALS, Kind, TrialRole, head_of, passing_rows

INDUCTION = Kind(
    "induction",
    "looks at what followed last time",
    paper="Olsson et al. 2022",
    rank=50,
    telling=40,
    sign="↻",
    light="#3d290e",
    dark="#f2fa46",
    glyph="M13 9.5A5.2 5.2 0 1 1 11.5 4.2M12 1V4.8H8.2",
    shows="followed",
)


@dataclass(frozen=True)
class Induction(TrialRole):
    """Heads whose mean weight on the token after the first occurrence is high.

    Olsson et al. 2022: prefix matching. The paper draws no line; the threshold is ours. The label
    says whether such a head also raises the right token.
    """

    least: float = 0.3
    #: The level of the tests, Holm over all heads.
    level: float = 0.05
    kind = INDUCTION
    name = column = "induction"
    reads = ("induction", TRIALS)
    measured = "what followed this token before"

    def label(self, table: HeadTable, row: pd.Series) -> str:
        """Whether the head copies as well."""
        copying = passing_rows(table, "induction_effect", least=0.0, level=self.level)
        heads = {head_of(other) for _, other in copying.iterrows()}
        return "matches and copies" if head_of(row) in heads else "matches prefixes"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With what the head adds to the right token, where that was measured."""
        rows = table.details[TRIALS]
        same = (rows[["stack", "layer", "head"]] == list(head_of(row))).all(axis=1)
        effect = rows.loc[same & (rows["column"] == "induction_effect"), "value"]
        more = f", adds {effect.iloc[0]:+.2f} nats to the right token" if len(effect) else ""
        return super().evidence(table, row) + more
