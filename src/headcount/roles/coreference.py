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

__all__ = ["Coreference"]

_KEY = ("stack", "layer", "head", "kind")


@dataclass(frozen=True)
class Coreference:
    """Heads that find antecedents: found on one half of the texts, then confirmed on the other.

    With pronouns between two names (GAP) also heads that look more at the one that is meant.
    """

    #: The rules that must all be beaten, for antecedents and for names, and by how many points.
    against: tuple[str, ...] = ("nearest", "head match")
    against_names: tuple[str, ...] = ("nearest",)
    margin: float = 0.05
    #: The level of the paired test, Holm over all heads and kinds.
    level: float = 0.05
    name = "coreference"
    reads = ("coreference",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and kind of mention that holds, the clearest first."""
        frame, names = table.details["coreference"], table.details.get("pronoun_choice")
        found = [_verdict(row, _mentions, frame) for row in self._holding(frame, self.against)]
        if names is None:
            return found
        return found + [
            _verdict(row, _pronouns, names, f", bias {row['bias']:.2f}")
            for row in self._holding(names, self.against_names)
        ]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same mentions, chosen and judged the same way."""
        for name, label in (("coreference", _mentions), ("pronoun_choice", _pronouns)):
            frame = twin.details.get(name)
            if frame is not None:
                rows = frame[
                    (frame["split"] == "report")
                    & frame["selected"].astype(bool)
                    & (frame["stack"] == verdict.head.stack)
                    & (frame["kind"].map(label) == verdict.label)
                ]
                if len(rows):
                    return float(rows["accuracy"].iloc[0])
        return math.nan

    def _holding(self, frame: pd.DataFrame, against: tuple[str, ...]) -> list[pd.Series]:
        """The rows that beat every rule on both halves, and by no chance; the hardest rule's."""
        rules = [rows for rule, rows in frame.groupby("against") if rule in against]
        held = [confirmed(rows, _KEY, self._beats, self._surely_beats) for rows in rules]
        if not held:
            return []
        every = pd.concat(held, ignore_index=True)
        every = every.assign(lead=every["accuracy"] - every["baseline"])
        every = every[every.groupby(list(_KEY))["lead"].transform("size") == len(rules)]
        hardest = every.sort_values("lead", kind="stable").drop_duplicates(list(_KEY))
        ordered = hardest.sort_values("lead", ascending=False, kind="stable")
        return [row for _, row in ordered.iterrows()]

    def _beats(self, rows: pd.DataFrame) -> pd.Series:
        return rows["accuracy"] - rows["baseline"] >= self.margin

    def _surely_beats(self, rows: pd.DataFrame) -> pd.Series:
        return self._beats(rows) & (rows["p_adjusted"] <= self.level)


def _mentions(kind: str) -> str:
    return "antecedents" if kind == "all" else f"antecedents of {kind} mentions"


def _pronouns(kind: str) -> str:
    return "pronoun between two names" if kind == "all" else f"{kind} pronoun between two names"


def _verdict(
    row: pd.Series, words: Callable[[str], str], frame: pd.DataFrame, more: str = ""
) -> Verdict:
    label = words(row["kind"])
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
