"""Feature heads: they look at one kind of word (Kovaleva et al. 2019, section 4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys import roles

FEATURE = roles.kind_beside(__file__, "feature")


# Kovaleva et al., EMNLP 2019, section 4.3, draw maps of this attention and name no threshold; the
# thresholds are ours, and so is the comparison: in a decoder the first word gets most of all, and
# it is often a subject.


@dataclass(frozen=True)
class Features:
    """Heads whose attention to a kind of word is high, on both halves of the texts."""

    #: The least attention to a word of the kind, and how many times that to any such word.
    least: float = 0.05
    times: float = 1.5
    #: The level of the test against other words, Holm over all heads and features.
    level: float = 0.05
    kind = FEATURE
    name = "feature"
    reads = ("features",)

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """One verdict for each head and feature that holds, the strongest first."""
        frame = table.details["features"]
        rows = frame[(frame["origin"] == "all") & frame["baseline"].notna()]
        held = roles.confirmed(
            rows,
            [*roles.HEAD_KEY, "feature"],
            self._high,
            lambda rows: self._high(rows, "compared_low") & (rows["p_adjusted"] <= self.level),
        ).sort_values("compared", ascending=False)
        figures = {
            name: held[f"compared{end}"]
            for name, end in (("value", ""), ("low", "_low"), ("high", "_high"), ("n", "_n"))
        }
        return roles.row_verdicts(
            held.assign(**figures),
            self.name,
            lambda row: str(row["feature"]),
            lambda row: (
                f"attention to {_article(row['feature'])} {roles.value_text(row)}, "
                f"to {row['against']} {row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """What the twin's clearest head would give here: its lead, times the verdict's baseline.

        Weights themselves do not compare: a random head rests nowhere, and gives all words more.
        """
        rows = roles.reported(
            twin.details["features"], verdict, feature=verdict.label, origin="all"
        )
        lead = (rows["compared"] / rows["baseline"]).max()
        return float(lead) * verdict.baseline if len(rows) else math.nan

    def _high(self, rows: pd.DataFrame, figure: str = "compared") -> pd.Series:
        return (rows[figure] >= self.least) & (rows[figure] >= self.times * rows["baseline"])


def _article(noun: str) -> str:
    """A noun with its article.

    >>> _article("object"), _article("verb")
    ('an object', 'a verb')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
