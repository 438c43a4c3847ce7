"""Rare-word heads (Voita et al. 2019, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headcount import stats
from headcount.records import HeadTable
from headcount.surveys import roles

#: What a survey calls frequencies that are counted on the text under test.
OWN_TEXT = "the corpus"

RARE = roles.kind_beside(__file__, "rare")


# Voita et al., ACL 2019, section 5.3, found one in the first layer of each model: 66% of tokens on
# the rarest and 83% on one of the two rarest (OpenSubtitles), over 50% (WMT). There is no rule in
# the paper, so the threshold is ours.


@dataclass(frozen=True)
class Rare:
    """Heads that point to one of the two rarest tokens of a sentence.

    How rare a token is cannot be told from the text under test: the score would fall as the text
    grows. So nothing is judged by its counts, unless `own_text` is asked for.
    """

    #: The least share of tokens on one of the two rarest, also at the lower end of its interval.
    share: float = 0.5
    #: How many times chance: a causal query that sees three tokens can hardly miss two.
    times: float = 2.0
    #: What its interval must lie above: a pick among all tokens, or among the uncommon ones alone.
    above: Literal["chance", "uncommon"] = "uncommon"
    #: The level of that test, Holm over all heads.
    level: float = 0.05
    #: Whether frequencies may be those of the text under test.
    own_text: bool = False
    kind = RARE
    name = "rare"
    reads = ("rare_two", "rarity")

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return (("the two rarest tokens", "rare_two", self.share),)

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """The heads whose share reaches the threshold and lies above the baseline."""
        found = table.details["rarity"].set_index(roles.HEAD_KEY)
        if "counts" in found and not self.own_text:
            found = found[found["counts"] != OWN_TEXT]
        rarest = found.loc[found["target"] == "rare", "share"]
        two = found[found["target"] == "rare_two"]
        p = two["p" if self.above == "chance" else "p_uncommon"]
        if two.empty:
            return []
        two = two.assign(rarest=rarest, baseline=two[self.above], p=p).reset_index()
        two = two.assign(p_adjusted=stats.holm(two["p"].to_numpy()))
        high = (two["low"] >= self.share) & (two["low"] >= self.times * two["chance"])
        held = two[high & (two["p_adjusted"] <= self.level)].rename(columns={"share": "value"})
        return roles.row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            lambda row: "two rarest tokens",
            lambda row: (
                f"one of the two rarest tokens {roles.value_text(row)}, "
                f"the rarest {row['rarest']:.2f}, chance {row['chance']:.2f}, "
                f"among uncommon tokens {row['uncommon']:.2f}"
                + (f", counts of {row['counts']}" if row.get("counts") else "")
            ),
        )

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """The share of the twin's best head."""
        return roles.best_of(twin, "rare_two", verdict.head.stack)
