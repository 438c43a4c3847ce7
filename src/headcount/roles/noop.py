"""Heads that do one thing, and rest where there is nothing of the kind to do.

Clark et al., BlackBoxNLP 2019, section 3.2: the head that finds direct objects looks at [SEP] from
words that are none. Where a model rests on its first token instead, that is told as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from headcount import stats
from headcount.heads import Head
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["RESTS", "NoOp"]

#: Where a head may rest, by column: its role, and the words for it.
RESTS = {"separator": ("separator", "separators"), "first": ("sink", "the first token")}

_KEY = ["stack", "layer", "head", "relation", "direction"]


@dataclass(frozen=True)
class NoOp:
    """The rule for heads that follow a relation, and rest where a word does not bear it.

    Each head is asked about one relation: the one in which it leads its offset baseline most, on
    the half of the sentences that chooses.
    """

    #: How far it must lead there, in points.
    margin: float = 0.10
    #: How much more of its attention rests where the relation is not.
    least: float = 0.05
    #: The level of the test, Holm over the heads asked.
    level: float = 0.05
    reads = ("relations", "rest_by_relation")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """A verdict for each head and resting place that holds, the clearest first."""
        asked = self._asked(table)
        asked = asked.assign(p_adjusted=stats.holm(asked["p"].to_numpy(dtype=float)))
        held = asked[(-asked["difference"] >= self.least) & (asked["p_adjusted"] <= self.level)]
        return [_noop(row) for _, row in held.sort_values("difference").iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The largest difference of a twin's head for the same relation and resting place."""
        if "rest_by_relation" not in twin.details:
            return math.nan
        rows = twin.details["rest_by_relation"]
        rows = rows[(rows["split"] == "report") & (rows["stack"] == verdict.head.stack)]
        same = rows[rows.apply(_label, axis=1) == verdict.label] if len(rows) else rows
        return float((-same["difference"]).max()) if len(same) else math.nan

    def _asked(self, table: HeadTable) -> pd.DataFrame:
        """The rows of `report` for each head's best relation."""
        relations, rest = table.details["relations"], table.details["rest_by_relation"]
        known = relations["direction"].isin(rest["direction"]) & (relations["relation"] != "all")
        rows = relations[(relations["split"] == "select") & known]
        lead = rows["accuracy"] - rows["baseline"]
        best = rows.assign(lead=lead).sort_values("lead", kind="stable")
        best = best[best["lead"] >= self.margin].drop_duplicates(_KEY[:3], keep="last")
        return rest[rest["split"] == "report"].merge(best[_KEY], on=_KEY)


def _label(row: pd.Series) -> str:
    return f"rests on {RESTS[row['rest']][1]} without {row['relation']} {row['direction']}"


def _noop(row: pd.Series) -> Verdict:
    low, high = -row["difference_high"], -row["difference_low"]
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        RESTS[row["rest"]][0],
        _label(row),
        float(-row["difference"]),
        float(low),
        float(high),
        n=int(row["n"]),
        baseline=0.0,
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{row['relation']} {row['direction']}: mass on {RESTS[row['rest']][1]} "
        f"{row['value']:.2f} from words that bear it, {row['baseline']:.2f} from others, "
        f"{-row['difference']:.2f} [{low:.2f}, {high:.2f}] apart",
    )
