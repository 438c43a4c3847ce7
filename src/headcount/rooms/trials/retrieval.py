"""Retrieval heads (Wu et al. 2024, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys.roles import MEASURES, TRIALS, Kind, TrialRole, Verdict

RETRIEVAL = Kind(
    "retrieval",
    "copies from far back",
    paper="Wu et al. 2024",
    rank=60,
    telling=50,
    sign="⚲",
    light="#5b0643",
    dark="#c0dcde",
    glyph="M6.6 11.2A4.6 4.6 0 1 1 6.7 11.2M10 10 14.5 14.5",
)


@dataclass(frozen=True)
class Retrieval(TrialRole):
    """Heads that point at a needle's tokens while they are copied.

    Wu et al. 2024, section 2: a retrieval score of 0.1 or more. As in the paper, only a model that
    does find the needle can have such heads.
    """

    least: float = 0.1
    #: The share of the answer that the model itself must get right for the score to mean anything.
    trusted: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = RETRIEVAL
    name = column = "retrieval"
    reads = ("retrieval", TRIALS, MEASURES)
    measured, usual_label = "the token to be copied", "copies from far back"

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that retrieve, if the model does."""
        return super().judge(table) if _right(table) >= self.trusted else []

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With what the model itself gets right."""
        return f"{super().evidence(table, row)}, the model gets {_right(table):.2f} right"


def _right(table: HeadTable) -> float:
    """The share of the needles' tokens that the model itself gets right; NaN where not known."""
    rows = table.details.get(MEASURES)
    if rows is None:
        return float("nan")
    wanted = (rows["trial"] == "needle") & (rows["name"] == "right tokens of the answer")
    return float(rows.loc[wanted, "value"].mean())
