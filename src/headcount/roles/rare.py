"""Rare-word heads: the largest weight sits on one of the rarest tokens of the sentence.

Voita et al., ACL 2019, section 5.3, found one in the first layer of each model: 66% of tokens on
the rarest and 83% on one of the two rarest (OpenSubtitles), over 50% (WMT). There is no rule in
the paper, so the threshold is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headcount import stats
from headcount.heads import Head
from headcount.roles.role import Verdict, best_of
from headcount.table import HeadTable

__all__ = ["Rare"]


@dataclass(frozen=True)
class Rare:
    """Heads that point to one of the two rarest tokens of a sentence."""

    #: The least share of tokens on one of the two rarest.
    share: float = 0.5
    #: How many times the blind pick: a causal query that sees three tokens can hardly miss two.
    times: float = 2.0
    #: What it must surely lie above: a pick among all tokens, or among the uncommon ones alone.
    above: Literal["chance", "uncommon"] = "chance"
    #: The level of that test, Holm over all heads.
    level: float = 0.05
    name = "rare"
    reads = ("rare_two", "rarity")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads whose share reaches the threshold and lies above the baseline."""
        found = table.details["rarity"].set_index(["stack", "layer", "head"])
        rarest = found.loc[found["target"] == "rare", "share"]
        two = found[found["target"] == "rare_two"]
        p = two["p" if self.above == "chance" else "p_uncommon"]
        two = two.assign(rarest=rarest, baseline=two[self.above], p=p).reset_index()
        two = two.assign(p_adjusted=stats.holm(two["p"].to_numpy()))
        high = (two["share"] >= self.share) & (two["share"] >= self.times * two["chance"])
        held = two[high & (two["p_adjusted"] <= self.level)]
        return [_verdict(row) for _, row in held.sort_values("share", ascending=False).iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's best head on the same question."""
        return best_of(twin, "rare_two", verdict.head.stack)


def _verdict(row: pd.Series) -> Verdict:
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "rare",
        "two rarest tokens",
        float(row["share"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"one of the two rarest tokens {row['share']:.2f} "
        f"[{row['low']:.2f}, {row['high']:.2f}], the rarest {row['rarest']:.2f}, "
        f"a blind pick {row['chance']:.2f}, one of uncommon tokens {row['uncommon']:.2f}",
    )
