"""Feature heads: they look at one kind of word more than at other words that stand alike.

Kovaleva et al., EMNLP 2019, section 4.3, draw maps of this attention and name no threshold; the
thresholds are ours, and so is the comparison: in a decoder the first word gets most of all, and it
is often a subject.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.heads import Head
from headcount.roles.confirmed import confirmed
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["Features"]

_KEY = ("stack", "layer", "head", "feature")


@dataclass(frozen=True)
class Features:
    """Heads whose attention to a kind of word is high, on both halves of the texts."""

    #: The least attention to a word of the kind, and how many times that to any such word.
    least: float = 0.05
    times: float = 1.5
    #: The level of the test against other words, Holm over all heads and features.
    level: float = 0.05
    name = "feature"
    reads = ("features",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and feature that holds, the strongest first."""
        frame = table.details["features"]
        rows = frame[(frame["origin"] == "all") & frame["baseline"].notna()]
        held = confirmed(
            rows,
            _KEY,
            self._high,
            lambda rows: self._high(rows) & (rows["p_adjusted"] <= self.level),
        )
        return [
            _verdict(row) for _, row in held.sort_values("compared", ascending=False).iterrows()
        ]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's clearest head would give here: its lead, times the verdict's baseline.

        Weights themselves do not compare: a random head rests nowhere, and gives all words more.
        """
        frame = twin.details["features"]
        rows = frame[
            (frame["split"] == "report")
            & (frame["origin"] == "all")
            & (frame["stack"] == verdict.head.stack)
            & (frame["feature"] == verdict.label)
        ]
        lead = (rows["compared"] / rows["baseline"]).max()
        return float(lead) * verdict.baseline if len(rows) else math.nan

    def _high(self, rows: pd.DataFrame) -> pd.Series:
        return (rows["compared"] >= self.least) & (
            rows["compared"] >= self.times * rows["baseline"]
        )


def _verdict(row: pd.Series) -> Verdict:
    value, low, high = (float(row[name]) for name in ("compared", "compared_low", "compared_high"))
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "feature",
        str(row["feature"]),
        value,
        low,
        high,
        n=int(row["compared_n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"attention to {_article(row['feature'])} {value:.2f} [{low:.2f}, {high:.2f}], "
        f"to {row['against']} {row['baseline']:.2f}",
    )


def _article(noun: str) -> str:
    """A noun with its article.

    >>> _article("object"), _article("verb")
    ('an object', 'a verb')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
