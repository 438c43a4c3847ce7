"""Coreference heads: they point to an antecedent (Clark et al. 2019, section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys import roles

COREFERENCE = roles.kind_beside(__file__, "coreference")


# Clark et al., BlackBoxNLP 2019, section 4.3: one head of BERT was right for 65% of mentions, over
# ten points above the nearest mention with the same head word. There is no rule in the paper, so
# the margin is ours.

#: Table to the words for a kind of mention.
_COREFERENT: dict[str, Callable[[str], str]] = {
    "coreference": lambda kind: "antecedents" + ("" if kind == "all" else f" of {kind} mentions"),
    "pronoun_choice": lambda kind: (
        ("" if kind == "all" else f"{kind} ") + "pronoun between two names"
    ),
}


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
    kind = COREFERENCE
    name = "coreference"
    reads = ("coreference",)

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """One verdict for each head and kind of mention that holds, the clearest first."""
        found = self._judge(table, "coreference", self.against)
        return found + self._judge(table, "pronoun_choice", self.against_names)

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """What the twin's best head gets on the same mentions, chosen and judged the same way."""
        for name, words in _COREFERENT.items():
            if name in twin.details:
                rows = roles.reported(twin.details[name], verdict)
                rows = rows[rows["selected"].astype(bool)]
                rows = rows[rows["kind"].map(words) == verdict.label]
                if len(rows):
                    return roles.first_of(rows["accuracy"])
        return math.nan

    def _judge(self, table: HeadTable, name: str, against: tuple[str, ...]) -> list[roles.Verdict]:
        if name not in table.details:
            return []
        frame, words = table.details[name], _COREFERENT[name]
        return roles.row_verdicts(
            self._holding(frame, against),
            self.name,
            lambda row: words(row["kind"]),
            lambda row: f"{words(row['kind'])} {roles.value_text(row)}{_rules(frame, row)}",
        )

    def _holding(self, frame: pd.DataFrame, against: tuple[str, ...]) -> pd.DataFrame:
        """The rows that beat every rule on both halves, and by no chance; the hardest rule's."""
        key = [*roles.HEAD_KEY, "kind"]
        rules = [rows for rule, rows in frame.groupby("against") if rule in against]
        if not rules:
            return frame.iloc[:0]
        held = [roles.confirmed(rows, key, self._beats, self._surely_beats) for rows in rules]
        every = pd.concat(held, ignore_index=True)
        every = every.assign(lead=every["accuracy"] - every["baseline"], value=every["accuracy"])
        every = every[every.groupby(key)["lead"].transform("size") == len(rules)]
        hardest = every.sort_values("lead", kind="stable").drop_duplicates(key)
        return hardest.sort_values("lead", ascending=False, kind="stable")

    def _beats(self, rows: pd.DataFrame) -> pd.Series:
        return rows["accuracy"] - rows["baseline"] >= self.margin

    def _surely_beats(self, rows: pd.DataFrame) -> pd.Series:
        above = rows["low"] - rows["baseline"] >= self.margin
        return above & (rows["p_adjusted"] <= self.level)


def _rules(frame: pd.DataFrame, row: pd.Series) -> str:
    """What each rule gets on the same mentions, and the bias between genders where it is known."""
    same = frame[
        (frame["kind"] == row["kind"]) & (frame["split"] == "report")
        & (frame["stack"] == row["stack"])
    ]  # fmt: skip
    others = same.drop_duplicates("against").set_index("against")["baseline"]
    words = "".join(f", {name} {value:.2f}" for name, value in others.items())
    return words + (f", bias {row['bias']:.2f}" if "bias" in row else "")
