"""Previous-token heads: they look one place back, whatever stands there.

Elhage et al. 2021 and Olsson et al. 2022, on random tokens, where nothing but the place can be
followed; half of the weight is asked for, as Clark et al. 2019, section 3.1, count such heads.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from headcount import stats
from headcount.records import Head, HeadTable
from headcount.survey.roles.role import (
    TRIALS,
    Verdict,
    best_of,
    head_of,
    passing_rows,
    plain_words,
    tried,
)

# --- Heads that do one thing, and rest where there is nothing of the kind to do -----------------
# Clark et al., BlackBoxNLP 2019, section 3.2: the head that finds direct objects looks at [SEP]
# from
# words that are none. Where a model rests on its first token instead, that is told as such.

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


# --- Heads that rest on separators, or on the first token ---------------------------------------
# Clark et al., BlackBoxNLP 2019, section 3.2, read attention to [SEP] as a no-op; their clustering
# (section 6) calls a head a separator head above a mean mass of 0.6.


@dataclass(frozen=True)
class Separator:
    """Heads whose mean mass on separators, or on the first token of an encoder, is high.

    With a treebank also heads that rest there only where a word does not bear their relation
    (`noop`). Resting on the first token is told as a sink; decoders have a trial for that.
    """

    #: The least mean mass, also at the lower end of its interval.
    share: float = 0.6
    noop: NoOp = field(default_factory=NoOp)
    name = "separator"
    reads = ("separator",)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that rest, with what separators do and what the loss notices."""
        encoders = [stack for stack in table.stacks if stack == "enc"]
        found = _resting(table, "separator", self.share, table.stacks)
        found += _resting(table, "first", self.share, encoders)
        there = all(name in table.details for name in self.noop.reads)
        return found + (self.noop.judge(table) if there else [])

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        for column, (_, place) in RESTS.items():
            if verdict.label == place:
                return best_of(twin, column, verdict.head.stack)
        return self.noop.chance(twin, verdict)


def _resting(table: HeadTable, column: str, share: float, stacks: list[str]) -> list[Verdict]:
    """Heads whose whole interval reaches the share, the highest first."""
    if column not in table.low:  # one text tells nothing of others
        return []
    held = table.frame[column][table.low[column] >= share]
    held = held.sort_values(ascending=False, kind="stable")
    heads = [Head(stack, int(layer), int(index)) for stack, layer, index in held.index]
    return [_rest_verdict(table, head, column) for head in heads if head.stack in stacks]


def _rest_verdict(table: HeadTable, head: Head, column: str) -> Verdict:
    known = table.head(head)
    value, low, high = (_number(known.get(f"{column}{end}")) for end in ("", "_low", "_high"))
    role, place = RESTS[column]
    words = f"mass on {place} {value:.2f} [{low:.2f}, {high:.2f}]"
    words += _own_row(known) if column == "separator" else ""
    return Verdict(
        head,
        role,
        place,
        value,
        low,
        high,
        n=int(table.provenance.get("counts", {}).get("rows", 0)),
        evidence=words + _noticed(table, head, column),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _own_row(known: dict[str, Any]) -> str:
    """Clark's first argument: where separators look themselves, and how broadly."""
    own, breadth = (
        _number(known.get(name)) for name in ("separator_to_separator", "separator_breadth")
    )
    told = "" if math.isnan(own) else f", from separators themselves {own:.2f}"
    return told + ("" if math.isnan(breadth) else f", their breadth {breadth:.2f} of the largest")


def _noticed(table: HeadTable, head: Head, column: str) -> str:
    """Clark's third argument: how much the loss notices, in this layer, beside other tokens."""
    layers = table.details.get("noop_layers")
    if layers is None:
        return ""
    row = layers[
        (layers["stack"] == head.stack) & (layers["layer"] == head.layer)
        & (layers["target"] == column)
    ]  # fmt: skip
    if not len(row):
        return ""
    return f", |dL/dα| there {row['share'].iloc[0]:.2f} of that on other tokens in its layer"


# --- Attention sinks: heads that rest on the first token of a text ------------------------------
# Xiao et al. 2024; the line is that of Gu et al. 2025: a mean weight above 0.3.

#: The details of which token is the sink, with and without a begin-of-sequence token.
SINKS = "sinks"
_OWN = "as written"

Row = dict[Hashable, Any]


@dataclass(frozen=True)
class Sink:
    """Heads whose mean weight on the first token, from later ones, is high."""

    least: float = 0.3
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "sink"
    reads = ("sink", TRIALS, SINKS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that rest; the label says which token is looked at most."""
        rows = passing_rows(table, "sink", least=self.least, level=self.level)
        own, others = _by_head(table.details[SINKS])
        return tried(
            rows,
            self.name,
            lambda row: _sink_label(own[head_of(row)]),
            lambda row: (
                plain_words("first token", row)
                + f", in {own[head_of(row)]['resting_texts']:.0%} of texts"
                + "".join(f", {one['text']} {one['value']:.2f}" for one in others[head_of(row)])
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "sink", verdict.head.stack)


def _by_head(sinks: pd.DataFrame) -> tuple[dict[Head, Row], dict[Head, list[Row]]]:
    """Each head's row on texts as they are written, and its rows with another beginning."""
    own: dict[Head, Row] = {}
    others: dict[Head, list[Row]] = defaultdict(list)
    for row in sinks.to_dict("records"):
        head = Head(row["stack"], int(row["layer"]), int(row["head"]))
        if row["text"] == _OWN:
            own[head] = row
        else:
            others[head].append(row)
    return own, others


def _sink_label(own: Row) -> str:
    """The first token, unless another one is looked at more often."""
    return "first token" if own["first_top"] >= own["token_top"] else f"'{own['token']}'"


# --- Source-end heads ---------------------------------------------------------------------------
# The sink of cross attention; half of the mass is asked for, a threshold of ours.


@dataclass(frozen=True)
class SourceEnd:
    """Heads whose mass is mostly on the source's end token and final punctuation."""

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "source-end"
    reads = ("source_end", TRIALS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that rest there."""
        rows = passing_rows(table, "source_end", least=self.least, level=self.level)
        return tried(
            rows,
            self.name,
            lambda row: "end of source",
            lambda row: plain_words("the end of the source", row),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "source_end", verdict.head.stack)


# --- Positional heads ---------------------------------------------------------------------------
# Voita et al., ACL 2019, section 5.1: at least 90% of tokens at one relative position. There is no
# author code. The null is a pick among all tokens that could be seen.


@dataclass(frozen=True)
class Positional:
    """Heads that point to one offset.

    `edges` says whether tokens that have no token at that offset, such as the first one for
    offset -1, stay in the denominator ("keep", the strict reading) or leave it ("drop").
    """

    #: The least share of tokens at the offset.
    share: float = 0.9
    edges: Literal["keep", "drop"] = "keep"
    #: The level of the test against chance, Holm over all heads.
    level: float = 0.05
    name = "positional"
    reads = ("best_offset_share", "positions")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads whose share reaches the threshold and is no chance."""
        found = table.details["positions"]
        found = found[found["edges"] == self.edges]
        found = found.assign(p_adjusted=stats.holm(found["p"].to_numpy()))
        held = found[(found["share"] >= self.share) & (found["p_adjusted"] <= self.level)]
        return [_verdict(row) for _, row in held.sort_values("share", ascending=False).iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's most positional head."""
        return best_of(twin, "best_offset_share", verdict.head.stack)


def _verdict(row: pd.Series) -> Verdict:
    label = f"offset {row['offset']:+d}" if row["offset"] else "offset 0"
    interval = f"[{row['low']:.2f}, {row['high']:.2f}]"
    return Verdict(
        Head(row["stack"], int(row["layer"]), int(row["head"])),
        "positional",
        label,
        float(row["share"]),
        float(row["low"]),
        float(row["high"]),
        n=int(row["n"]),
        baseline=float(row["chance"]),
        p=float(row["p"]),
        p_adjusted=float(row["p_adjusted"]),
        evidence=f"{label} for {row['share']:.2f} {interval} of tokens, "
        f"a blind pick {row['chance']:.2f}",
    )


# --- Previous-token heads: they look one place back, whatever stands there ----------------------


@dataclass(frozen=True)
class Previous:
    """Heads that put most of their weight on the token before, on random text."""

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "previous"
    reads = ("previous_random", TRIALS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that look back; the evidence has natural text beside it where known."""
        rows = passing_rows(table, "previous_random", least=self.least, level=self.level)

        def words(row: pd.Series) -> str:
            return plain_words("the token before", row) + _natural(table, row)

        return tried(rows, self.name, lambda row: "token before", words)

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The twin's best head on the same question."""
        return best_of(twin, "previous_random", verdict.head.stack)


def _natural(table: HeadTable, row: pd.Series) -> str:
    """The survey's figure on natural text."""
    if "previous" not in table.frame:
        return ""
    value = table.head(head_of(row))["previous"]
    return "" if value is None else f", on natural text {value:.2f}"
