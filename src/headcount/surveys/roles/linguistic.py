"""Heads that follow language: relations, rare words, coreference, arguments, kinds of words and
translations.

Voita et al., ACL 2019, sections 5.2 and 5.3; Clark et al., BlackBoxNLP 2019, sections 4.2 and 4.3;
Kovaleva et al., EMNLP 2019, sections 4.1 and 4.3; Garg et al. 2019 and Chen et al. 2020. Where
annotation is read, heads are found on one half of the texts and confirmed on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headcount import stats
from headcount.records import HeadTable
from headcount.surveys.roles.role import (
    TRIALS,
    Verdict,
    best_of,
    confirmed,
    passing_rows,
    plain_words,
    row_verdicts,
    value_text,
)

_HEAD = ["stack", "layer", "head"]
#: What a survey calls frequencies that are counted on the text under test.
OWN_TEXT = "the corpus"


# --- Syntactic heads ----------------------------------------------------------------------------
# Voita et al., ACL 2019, section 5.2: at least 10% above the most frequent relative position, which
# we read as points (their Table 1 fits that); Clark et al. 2019, Table 1. There is no author code.

# Accuracies are ratios of counts: 0.45 - 0.35 must reach 0.10.
_SLACK = 1e-9
#: With so many relations that can be judged, too few arcs are no reason for a remark.
_USUAL = 5


@dataclass(frozen=True)
class Syntactic:
    """Heads that follow a relation in a direction: found on one half of the sentences, then
    confirmed on the other.
    """

    #: How far above the offset, in points, or as a share of the offset's accuracy; on the half
    #: that judges, the lower end of the interval must be so far above.
    margin: float = 0.10
    relative: bool = False
    #: The level of the paired test, Holm over all heads; None asks for no test, as Voita did.
    level: float | None = 0.05
    #: The fewest arcs of a relation, on both halves together.
    support: int = 100
    #: Not relations that a head can be said to follow.
    without: frozenset[str] = frozenset({"all", "root", "punct"})
    name = "syntactic"
    reads = ("relations",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head, relation and direction that holds, the clearest first."""
        frame = table.details["relations"]
        held = self._holding(frame[~frame["relation"].isin(self.without)])
        lead = (held["accuracy"] - held["baseline"]).sort_values(ascending=False, kind="stable")
        rows = held.loc[lead.index].rename(columns={"accuracy": "value"})
        return row_verdicts(
            rows,
            self.name,
            lambda row: f"{row['relation']} {row['direction']}",
            lambda row: (
                f"{row['relation']} {row['direction']} {value_text(row)}, "
                f"offset baseline {row['baseline']:.2f}"
            ),
        )

    def too_few(self, relations: pd.DataFrame, sentences: int) -> str:
        """A remark where fewer than five relations have arcs enough; empty where they have."""
        rows = relations[(relations["split"] == "all") & ~relations["relation"].isin(self.without)]
        arcs = rows.groupby("relation")["n"].max().nlargest(_USUAL)
        enough = arcs[arcs >= self.support]
        if len(enough) == _USUAL or not len(arcs):
            return ""
        wanted = math.ceil(sentences * self.support / arcs.iloc[-1])
        return (
            f"A syntactic verdict takes {self.support} arcs of its relation, and {sentences:,} "
            f"sentences have so many of {', '.join(enough.index) or 'none'}; the {len(arcs)} most "
            f"frequent ({', '.join(arcs.index)}) would have them in about {wanted:,} sentences."
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same relation, chosen and judged the same way."""
        relation, _, direction = verdict.label.rpartition(" ")
        frame = twin.details["relations"]
        there = _reported(frame, verdict, relation=relation, direction=direction)
        return _first(there.loc[there["selected"].astype(bool), "accuracy"])

    def _holding(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of `report` that pass there, and passed on `select` before."""
        key = [*_HEAD, "relation", "direction"]
        halves = frame[frame["split"].isin(["select", "report"])]
        arcs = halves.groupby(key)["n"].sum().rename("arcs")
        level = math.inf if self.level is None else self.level
        tested = frame["p_adjusted"].fillna(math.inf) <= level
        return confirmed(
            frame.assign(tested=tested).join(arcs, on=key),
            key,
            lambda rows: self._beats(rows, "accuracy"),
            lambda rows: self._beats(rows, "low") & rows["tested"] & (rows["arcs"] >= self.support),
        )

    def _beats(self, rows: pd.DataFrame, figure: str) -> pd.Series:
        wanted = self.margin * rows["baseline"] if self.relative else self.margin
        return rows[figure] - rows["baseline"] >= wanted - _SLACK


def _reported(frame: pd.DataFrame, verdict: Verdict, **same: str) -> pd.DataFrame:
    """The rows of `report` of a verdict's stack with these values."""
    rows = frame[(frame["split"] == "report") & (frame["stack"] == verdict.head.stack)]
    for column, value in same.items():
        rows = rows[rows[column] == value]
    return rows


def _first(values: pd.Series) -> float:
    return float(values.iloc[0]) if len(values) else math.nan


# --- Rare-word heads ----------------------------------------------------------------------------
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
    #: What it must surely lie above: a pick among all tokens, or among the uncommon ones alone.
    above: Literal["chance", "uncommon"] = "uncommon"
    #: The level of that test, Holm over all heads.
    level: float = 0.05
    #: Whether frequencies may be those of the text under test.
    own_text: bool = False
    name = "rare"
    reads = ("rare_two", "rarity")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads whose share reaches the threshold and lies above the baseline."""
        found = table.details["rarity"].set_index(_HEAD)
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
        return row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            lambda row: "two rarest tokens",
            lambda row: (
                f"one of the two rarest tokens {value_text(row)}, the rarest {row['rarest']:.2f}, "
                f"chance {row['chance']:.2f}, among uncommon tokens {row['uncommon']:.2f}"
                + (f", counts of {row['counts']}" if row.get("counts") else "")
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's best head."""
        return best_of(twin, "rare_two", verdict.head.stack)


# --- Feature heads ------------------------------------------------------------------------------
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
    name = "feature"
    reads = ("features",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and feature that holds, the strongest first."""
        frame = table.details["features"]
        rows = frame[(frame["origin"] == "all") & frame["baseline"].notna()]
        held = confirmed(
            rows,
            [*_HEAD, "feature"],
            self._high,
            lambda rows: self._high(rows, "compared_low") & (rows["p_adjusted"] <= self.level),
        ).sort_values("compared", ascending=False)
        figures = {
            name: held[f"compared{end}"]
            for name, end in (("value", ""), ("low", "_low"), ("high", "_high"), ("n", "_n"))
        }
        return row_verdicts(
            held.assign(**figures),
            self.name,
            lambda row: str(row["feature"]),
            lambda row: (
                f"attention to {_article(row['feature'])} {value_text(row)}, "
                f"to {row['against']} {row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's clearest head would give here: its lead, times the verdict's baseline.

        Weights themselves do not compare: a random head rests nowhere, and gives all words more.
        """
        rows = _reported(twin.details["features"], verdict, feature=verdict.label, origin="all")
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


# --- Argument heads -----------------------------------------------------------------------------
# Kovaleva et al., EMNLP 2019, section 4.1: two heads of BERT stood out, above the 99th percentile
# of all heads.


@dataclass(frozen=True)
class Arguments:
    """Heads that stand out on one half of the sentences and hold on the other."""

    #: How many times the attention of the same pairs elsewhere in the sentence.
    times: float = 2.0
    #: Whether only heads above the 99th percentile are taken, as the paper does.
    outliers: bool = True
    #: The level of the test against pairs elsewhere, Holm over all heads and directions.
    level: float = 0.05
    name = "argument"
    reads = ("arguments",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and direction that holds, the strongest first."""
        held = confirmed(
            table.details["arguments"], [*_HEAD, "link"], self._stands_out, self._holds
        )
        return row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            lambda row: str(row["link"]),
            lambda row: (
                f"{row['link']} {value_text(row)}, the same pairs elsewhere {row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gives the same link."""
        rows = _reported(twin.details["arguments"], verdict, link=verdict.label)
        return float(rows["value"].max()) if len(rows) else math.nan

    def _stands_out(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & rows["outlier"] if self.outliers else high

    def _holds(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & (rows["p_adjusted"] <= self.level)


# --- Coreference heads --------------------------------------------------------------------------
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
    name = "coreference"
    reads = ("coreference",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """One verdict for each head and kind of mention that holds, the clearest first."""
        found = self._judge(table, "coreference", self.against)
        return found + self._judge(table, "pronoun_choice", self.against_names)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same mentions, chosen and judged the same way."""
        for name, words in _COREFERENT.items():
            if name in twin.details:
                rows = _reported(twin.details[name], verdict)
                rows = rows[rows["selected"].astype(bool)]
                rows = rows[rows["kind"].map(words) == verdict.label]
                if len(rows):
                    return _first(rows["accuracy"])
        return math.nan

    def _judge(self, table: HeadTable, name: str, against: tuple[str, ...]) -> list[Verdict]:
        if name not in table.details:
            return []
        frame, words = table.details[name], _COREFERENT[name]
        return row_verdicts(
            self._holding(frame, against),
            self.name,
            lambda row: words(row["kind"]),
            lambda row: f"{words(row['kind'])} {value_text(row)}{_rules(frame, row)}",
        )

    def _holding(self, frame: pd.DataFrame, against: tuple[str, ...]) -> pd.DataFrame:
        """The rows that beat every rule on both halves, and by no chance; the hardest rule's."""
        key = [*_HEAD, "kind"]
        rules = [rows for rule, rows in frame.groupby("against") if rule in against]
        if not rules:
            return frame.iloc[:0]
        held = [confirmed(rows, key, self._beats, self._surely_beats) for rows in rules]
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


# --- Alignment heads ----------------------------------------------------------------------------
# Cross heads that point to the source token that a target token translates: Garg et al. 2019 while
# the token is predicted; Chen et al. 2020 (Shift-Att) while it is read. Neither draws a line: half
# of the links and 10 points above the diagonal are asked for, the margin that Voita et al. 2019,
# section 5.2, ask of syntactic heads.

#: Label to column: when a head looks at the source of a token.
WHEN = {"when read": "alignment_read", "when predicted": "alignment"}


@dataclass(frozen=True)
class Alignment:
    """Heads that point to a token's source more often than the diagonal does."""

    least: float = 0.5
    #: How far above the diagonal.
    margin: float = 0.1
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "alignment"
    reads = ("alignment", "alignment_read", TRIALS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that align, by when they do it."""
        found = [verdict for when in WHEN for verdict in self._judge(table, when)]
        return sorted(found, key=lambda verdict: -verdict.value)

    def _judge(self, table: HeadTable, when: str) -> list[Verdict]:
        return row_verdicts(
            passing_rows(table, WHEN[when], least=self.least, level=self.level, margin=self.margin),
            self.name,
            lambda row: when,
            lambda row: plain_words(f"the source of a token {when}", row),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The value of the twin's best head."""
        return best_of(twin, WHEN[verdict.label], verdict.head.stack)
