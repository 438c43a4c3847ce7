"""Alignment heads: cross heads that point to the source token a target token translates.

Garg et al. 2019 while the token is predicted; Chen et al. 2020 (Shift-Att) while it is
read. Neither draws a line: half of the links and 10 points above the diagonal are asked for, the
margin that Voita et al. 2019, section 5.2, ask of syntactic heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headcount import stats
from headcount.records import Head, HeadTable
from headcount.survey.roles.role import (
    TRIALS,
    Verdict,
    best_of,
    confirmed,
    passing_rows,
    plain_words,
    tried,
)

# --- Syntactic heads ----------------------------------------------------------------------------
# Voita et al., ACL 2019, section 5.2: at least 10% above the most frequent relative position, which
# we read as points (their Table 1 fits that); Clark et al. 2019, Table 1. There is no author code.

_KEY = ["stack", "layer", "head", "relation", "direction"]
# Accuracies are ratios of counts: 0.45 - 0.35 must reach 0.10.
_SLACK = 1e-9


@dataclass(frozen=True)
class Syntactic:
    """Heads that follow a relation in a direction: found on one half of the sentences, then
    confirmed on the other.
    """

    #: How far above the offset, in points, or as a share of the offset's accuracy.
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
        return [_verdict(row) for _, row in held.loc[lead.index].iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gets on the same relation, chosen and judged the same way."""
        relation, _, direction = verdict.label.rpartition(" ")
        frame = twin.details["relations"]
        there = frame[
            (frame["split"] == "report")
            & frame["selected"].astype(bool)
            & (frame["stack"] == verdict.head.stack)
            & (frame["relation"] == relation)
            & (frame["direction"] == direction)
        ]
        return float(there["accuracy"].iloc[0]) if len(there) else math.nan

    def _holding(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of `report` that pass there, and passed on `select` before."""
        by_split = {split: rows.set_index(_KEY) for split, rows in frame.groupby("split")}
        if not {"select", "report"} <= by_split.keys():
            return frame.iloc[:0]
        select, report = by_split["select"], by_split["report"]
        found = select.index[self._beats(select)]
        arcs = report["n"] + select["n"].reindex(report.index, fill_value=0)
        keep = self._beats(report) & report.index.isin(found) & (arcs >= self.support)
        if self.level is not None:
            keep &= report["p_adjusted"] <= self.level
        return report[keep].reset_index()

    def _beats(self, rows: pd.DataFrame) -> pd.Series:
        wanted = self.margin * rows["baseline"] if self.relative else self.margin
        return rows["accuracy"] - rows["baseline"] >= wanted - _SLACK


def _verdict(row: pd.Series) -> Verdict:
    label = f"{row['relation']} {row['direction']}"
    figures = f"{row['accuracy']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "syntactic",
        label,
        float(row["accuracy"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{label} {figures}, offset baseline {row['baseline']:.2f}",
    )


# --- Rare-word heads ----------------------------------------------------------------------------
# Voita et al., ACL 2019, section 5.3, found one in the first layer of each model: 66% of tokens on
# the rarest and 83% on one of the two rarest (OpenSubtitles), over 50% (WMT). There is no rule in
# the paper, so the threshold is ours.


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
        return [
            _rare_verdict(row) for _, row in held.sort_values("share", ascending=False).iterrows()
        ]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's best head on the same question."""
        return best_of(twin, "rare_two", verdict.head.stack)


def _rare_verdict(row: pd.Series) -> Verdict:
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


# --- Feature heads ------------------------------------------------------------------------------
# Kovaleva et al., EMNLP 2019, section 4.3, draw maps of this attention and name no threshold; the
# thresholds are ours, and so is the comparison: in a decoder the first word gets most of all, and
# it
# is often a subject.

_KEY_FEATURES = ("stack", "layer", "head", "feature")


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
            _KEY_FEATURES,
            self._high,
            lambda rows: self._high(rows) & (rows["p_adjusted"] <= self.level),
        )
        return [
            _features_verdict(row)
            for _, row in held.sort_values("compared", ascending=False).iterrows()
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


def _features_verdict(row: pd.Series) -> Verdict:
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


# --- Argument heads -----------------------------------------------------------------------------
# Kovaleva et al., EMNLP 2019, section 4.1: two heads of BERT stood out, above the 99th percentile
# of
# all heads.

_KEY_ARGUMENTS = ("stack", "layer", "head", "link")


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
        held = confirmed(table.details["arguments"], _KEY_ARGUMENTS, self._stands_out, self._holds)
        return [
            _arguments_verdict(row)
            for _, row in held.sort_values("value", ascending=False).iterrows()
        ]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the twin's best head gives the same link."""
        frame = twin.details["arguments"]
        rows = frame[
            (frame["split"] == "report")
            & (frame["stack"] == verdict.head.stack)
            & (frame["link"] == verdict.label)
        ]
        return float(rows["value"].max()) if len(rows) else math.nan

    def _stands_out(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & rows["outlier"] if self.outliers else high

    def _holds(self, rows: pd.DataFrame) -> pd.Series:
        high = rows["compared"] >= self.times * rows["baseline"]
        return high & (rows["p_adjusted"] <= self.level)


def _arguments_verdict(row: pd.Series) -> Verdict:
    figures = f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "argument",
        str(row["link"]),
        float(row["value"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["baseline"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{row['link']} {figures}, the same pairs elsewhere {row['baseline']:.2f}",
    )


# --- Coreference heads --------------------------------------------------------------------------
# Clark et al., BlackBoxNLP 2019, section 4.3: one head of BERT was right for 65% of mentions, over
# ten points above the nearest mention with the same head word. There is no rule in the paper, so
# the margin is ours.

_KEY_COREFERENCE = ("stack", "layer", "head", "kind")


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
        found = [
            _coreference_verdict(row, _mentions, frame)
            for row in self._holding(frame, self.against)
        ]
        if names is None:
            return found
        return found + [
            _coreference_verdict(row, _pronouns, names, f", bias {row['bias']:.2f}")
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
        held = [
            confirmed(rows, _KEY_COREFERENCE, self._beats, self._surely_beats) for rows in rules
        ]
        if not held:
            return []
        every = pd.concat(held, ignore_index=True)
        every = every.assign(lead=every["accuracy"] - every["baseline"])
        every = every[every.groupby(list(_KEY_COREFERENCE))["lead"].transform("size") == len(rules)]
        hardest = every.sort_values("lead", kind="stable").drop_duplicates(list(_KEY_COREFERENCE))
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


def _coreference_verdict(
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


# --- Alignment heads ----------------------------------------------------------------------------

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
        found = [verdict for when in WHEN for verdict in self._judged(table, when)]
        return sorted(found, key=lambda verdict: -verdict.value)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, WHEN[verdict.label], verdict.head.stack)

    def _judged(self, table: HeadTable, when: str) -> list[Verdict]:
        rows = passing_rows(
            table, WHEN[when], least=self.least, level=self.level, margin=self.margin
        )

        def words(row: pd.Series) -> str:
            return plain_words(f"the source of a token {when}", row)

        return tried(rows, self.name, lambda row: when, words)
