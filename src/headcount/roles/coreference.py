"""Coreference heads: they point from a mention to an antecedent, beyond matching strings.

Clark et al., BlackBoxNLP 2019, section 4.3: one head of BERT was right for 65% of mentions, over
ten points above the nearest mention with the same head word. There is no rule in the paper, so
the margin is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from headcount.heads import Head
from headcount.roles.confirmed import confirmed
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["Coreference", "PronounNames"]

_KEY = ("stack", "layer", "head", "kind")


@dataclass(frozen=True)
class _Choosing:
    """The rule that both share: above a baseline on both halves, and by no chance."""

    #: The baseline that must be beaten, and by how many points.
    against: str
    margin: float = 0.05
    #: The level of the paired test, Holm over all heads and kinds.
    level: float = 0.05

    def holding(self, frame: pd.DataFrame) -> list[pd.Series]:
        """The rows that hold, the clearest first."""
        rows = frame[frame["against"] == self.against]
        held = confirmed(
            rows,
            _KEY,
            self._beats,
            lambda rows: self._beats(rows) & (rows["p_adjusted"] <= self.level),
        )
        lead = (held["accuracy"] - held["baseline"]).sort_values(ascending=False, kind="stable")
        return [row for _, row in held.loc[lead.index].iterrows()]

    def _beats(self, rows: pd.DataFrame) -> pd.Series:
        return rows["accuracy"] - rows["baseline"] >= self.margin


@dataclass(frozen=True)
class Coreference(_Choosing):
    """Heads that find antecedents: found on one half of the texts, then confirmed on the other."""

    against: str = "head match"
    name = "coreference"
    reads = ("coreference",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and kind of mention that holds."""
        frame = table.details["coreference"]
        return [_verdict(row, _mentions(row["kind"]), frame) for row in self.holding(frame)]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same mentions."""
        return _twin(twin.details["coreference"], verdict, _mentions)


@dataclass(frozen=True)
class PronounNames(_Choosing):
    """Heads by which a pronoun looks more at the one of two names that is meant (GAP)."""

    against: str = "nearest"
    name = "coreference"
    reads = ("pronoun_choice",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and gender that holds, with the bias between genders."""
        frame = table.details["pronoun_choice"]
        return [
            _verdict(row, _pronouns(row["kind"]), frame, f", bias {row['bias']:.2f}")
            for row in self.holding(frame)
        ]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same pronouns."""
        return _twin(twin.details["pronoun_choice"], verdict, _pronouns)


def _mentions(kind: str) -> str:
    return "antecedents" if kind == "all" else f"antecedents of {kind} mentions"


def _pronouns(kind: str) -> str:
    return "pronoun between two names" if kind == "all" else f"{kind} pronoun between two names"


def _verdict(row: pd.Series, label: str, frame: pd.DataFrame, more: str = "") -> Verdict:
    same = frame[
        (frame["kind"] == row["kind"]) & (frame["split"] == "report")
        & (frame["stack"] == row["stack"])
    ]  # fmt: skip
    others = same.drop_duplicates("against").set_index("against")["baseline"]
    rules = "".join(f", {name} {value:.2f}" for name, value in others.items())
    figures = f"{row['accuracy']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "coreference",
        label,
        float(row["accuracy"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{label} {figures}{rules}{more}",
    )


def _twin(frame: pd.DataFrame, verdict: Verdict, label: Callable[[str], str]) -> float:
    """The twin's best head, chosen and judged the same way."""
    rows = frame[
        (frame["split"] == "report")
        & frame["selected"].astype(bool)
        & (frame["stack"] == verdict.head.stack)
        & (frame["kind"].map(label) == verdict.label)
    ]
    return float(rows["accuracy"].iloc[0]) if len(rows) else math.nan
