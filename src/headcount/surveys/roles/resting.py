"""Heads that rest or follow places: separators, sinks, the end of the source, fixed offsets.

Clark et al., BlackBoxNLP 2019, section 3.2 (attention to separators as a no-op); Xiao et al. 2024
and Gu et al. 2025 (attention sinks); Voita et al., ACL 2019, section 5.1 (positional heads);
Elhage et al. 2021 and Olsson et al. 2022 (previous-token heads).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from headcount import stats
from headcount.records import Head, HeadTable
from headcount.surveys.roles.linguistic import Syntactic
from headcount.surveys.roles.role import (
    TRIALS,
    TrialRole,
    Verdict,
    best_of,
    head_of,
    row_verdicts,
    value_text,
)

# --- Heads that do one thing, and rest where there is nothing of the kind to do -----------------
# Clark et al., BlackBoxNLP 2019, section 3.2: the head that finds direct objects looks at [SEP]
# from words that are none. Where a model rests on its first token instead, the verdict says so.

#: Where a head may rest, by column: its role, and the words for it.
RESTS = {
    "separator": ("separator", "separators"),
    "first": ("sink", "the first token"),
    "punctuation": ("punctuation", "punctuation"),
}

_KEY = ["stack", "layer", "head", "relation", "direction"]


@dataclass(frozen=True)
class NoOp:
    """The rule for heads that follow a relation, and rest where a word does not bear it.

    Only a relation that the head is confirmed to follow (`follows`) is asked for: a head that does
    nothing cannot be said to stop. Heads that do worse than the offset on a relation show what the
    place of words alone does to the difference; it must exceed all but `level` of theirs.
    """

    #: The rule for heads that follow a relation, with its relations and its support.
    follows: Syntactic = field(default_factory=Syntactic)
    #: How much more of its attention surely rests where the relation is not.
    least: float = 0.05
    #: Cohen's h of the two masses, from which a difference is called small.
    effect: float = 0.2
    #: The level of the test, Holm over the heads tested.
    level: float = 0.05
    reads = ("relations", "rest_by_relation")

    def judge(self, table: HeadTable) -> list[Verdict]:
        """A verdict for each head and resting place that holds, the clearest first."""
        rows = self._followed(table)
        rows = rows.assign(p_adjusted=stats.holm(rows["p"].to_numpy(dtype=float)))
        held = rows[
            (-rows["difference_high"] >= self.least)
            & (-rows["difference"] > rows["by_place"])
            & (rows["effect"] >= self.effect)
            & (rows["p_adjusted"] <= self.level)
        ]
        return [_noop(row) for _, row in held.sort_values("difference").iterrows()]

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The largest difference of a twin's head for the same relation and resting place."""
        if "rest_by_relation" not in twin.details:
            return math.nan
        rows = twin.details["rest_by_relation"]
        rows = rows[(rows["split"] == "report") & (rows["stack"] == verdict.head.stack)]
        same = rows[rows.apply(_label, axis=1) == verdict.label] if len(rows) else rows
        return float((-same["difference"]).max()) if len(same) else math.nan

    def _followed(self, table: HeadTable) -> pd.DataFrame:
        """The rows of `report` for relations that heads follow, with what places alone do."""
        relations, rest = table.details["relations"], table.details["rest_by_relation"]
        rest = rest[rest["split"] == "report"]
        value, baseline = (rest[name].clip(0, 1) ** 0.5 for name in ("value", "baseline"))
        rest = rest.assign(effect=2 * (np.arcsin(baseline) - np.arcsin(value)), by_place=-math.inf)
        worse = relations[
            (relations["split"] == "report") & (relations["accuracy"] < relations["baseline"])
        ]
        null = rest.merge(worse[_KEY], on=_KEY)
        for (stack, place), rows in null.groupby(["stack", "rest"]):
            own = (rest["stack"] == stack) & (rest["rest"] == place)
            rest.loc[own, "by_place"] = (-rows["difference"]).quantile(1 - self.level)
        labels = {(verdict.head, verdict.label) for verdict in self.follows.judge(table)}
        keys = zip(*(rest[name] for name in _KEY), strict=True)
        follows = [(Head(*head), f"{relation} {way}") in labels for *head, relation, way in keys]
        return rest[follows]


def _label(row: pd.Series) -> str:
    return f"rests on {RESTS[row['rest']][1]} without {row['relation']} {row['direction']}"


def _noop(row: pd.Series) -> Verdict:
    low, high = -row["difference_high"], -row["difference_low"]
    return Verdict(
        head_of(row),
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
        f"{-row['difference']:.2f} [{low:.2f}, {high:.2f}] apart, h {row['effect']:.2f}"
        + (f", by place alone {row['by_place']:.2f}" if math.isfinite(row["by_place"]) else ""),
    )


# --- Heads that rest on separators, or on the first token ---------------------------------------
# Clark et al., BlackBoxNLP 2019, section 3.2, read attention to [SEP] as a no-op; their clustering
# (section 6) calls a head a separator head above a mean mass of 0.6.


@dataclass(frozen=True)
class Separator:
    """Heads whose mean mass on separators, or on the first token of an encoder, is high.

    With a treebank also heads that look there only where a word does not bear their relation
    (`noop`). The first token is told as a sink; decoders have a trial for that.
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
        found += _resting(table, "punctuation", self.share, table.stacks)
        there = all(name in table.details for name in self.noop.reads)
        return found + (self.noop.judge(table) if there else [])

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The value of the twin's best head."""
        for column, (_, place) in RESTS.items():
            if verdict.label == place:
                return best_of(twin, column, verdict.head.stack)
        return self.noop.chance(twin, verdict)


def _resting(table: HeadTable, column: str, share: float, stacks: Sequence[str]) -> list[Verdict]:
    """Heads whose whole interval reaches the share, the highest first."""
    if column not in table.low:  # one text has no interval
        return []
    held = table.frame[column][table.low[column] >= share]
    held = held.sort_values(ascending=False, kind="stable")
    heads = [Head(stack, int(layer), int(index)) for stack, layer, index in held.index]
    return [_rest_verdict(table, head, column) for head in heads if head.stack in stacks]


def _rest_verdict(table: HeadTable, head: Head, column: str) -> Verdict:
    known = {name: math.nan if one is None else one for name, one in table.head(head).items()}
    row = pd.Series({end: known.get(f"{column}_{end}", math.nan) for end in ("low", "high")})
    row["value"] = known[column]
    role, place = RESTS[column]
    words = f"mass on {place} {value_text(row)}"
    words += _own_row(known) if column == "separator" else ""
    return Verdict(
        head,
        role,
        place,
        float(row["value"]),
        float(row["low"]),
        float(row["high"]),
        n=int(table.provenance.get("counts", {}).get("rows", 0)),
        evidence=words + _loss_change(table, head, column),
    )


def _own_row(known: dict[str, Any]) -> str:
    """Clark's first argument: where separators look themselves, and how broadly."""
    own, breadth = (
        known.get(name, math.nan) for name in ("separator_to_separator", "separator_breadth")
    )
    words = "" if math.isnan(own) else f", from separators themselves {own:.2f}"
    return words + ("" if math.isnan(breadth) else f", their breadth {breadth:.2f} of the largest")


def _loss_change(table: HeadTable, head: Head, column: str) -> str:
    """Clark's third argument: how much the loss changes, in this layer, against other tokens."""
    layers = table.details.get("noop_layers", pd.DataFrame(columns=["stack", "layer", "target"]))
    row = layers[
        (layers["stack"] == head.stack) & (layers["layer"] == head.layer)
        & (layers["target"] == column)
    ]  # fmt: skip
    if not len(row):
        return ""
    return f", |dL/dα| there {row['share'].iloc[0]:.2f} of that on other tokens in its layer"


# --- Roles that read a trial: sinks, the end of the source, the token before --------------------

#: The details of which token is the sink, with and without a begin-of-sequence token.
SINKS = "sinks"
#: Rows up to this place are not asked for their sink: they see little else.
SINK_AFTER = 4


@dataclass(frozen=True)
class Sink(TrialRole):
    """Heads whose mean weight on the first token, from later ones, is high.

    Xiao et al. 2024; the line is that of Gu et al. 2025: a mean weight above 0.3 in windows of 64
    tokens. On shorter texts even uniform attention gives the first token much, so the line moves
    with it: the odds of the first token against the others must be as many times those of uniform
    attention as 0.3 is in such a window.
    """

    least: float = 0.3
    #: The tokens of a window in which the line is `least`; None holds it whatever the length.
    window: int | None = 64
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = column = "sink"
    reads = ("sink", TRIALS, SINKS)
    measured = "first token"

    def line(self, table: HeadTable, rows: pd.DataFrame) -> pd.Series:
        """The line at the length of the texts, which the share of uniform attention tells."""
        if self.window is None or "uniform" not in table.details[SINKS]:
            return super().line(table, rows)
        sinks = table.details[SINKS].drop_duplicates(["stack", "layer", "head"])
        keys = ["stack", "layer", "head"]
        uniform = rows[keys].merge(sinks[[*keys, "uniform"]], how="left")["uniform"].to_numpy()
        places = range(SINK_AFTER + 1, self.window + 1)
        usual = sum(1 / place for place in places) / len(places)
        odds = self.least / (1 - self.least) * (1 - usual) / usual
        odds = odds * uniform / (1 - uniform)
        return pd.Series(odds / (1 + odds), rows.index)

    def label(self, table: HeadTable, row: pd.Series) -> str:
        """The first token, unless another one is looked at more often."""
        own = _sinks(table, row).iloc[0]
        return "first token" if own["first_top"] >= own["token_top"] else f"'{own['token']}'"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With the texts that rest there, and the weight when texts begin otherwise."""
        sinks = _sinks(table, row)
        words = f"{super().evidence(table, row)}, in {sinks['resting_texts'].iloc[0]:.0%} of texts"
        others = sinks.iloc[1:]
        return words + "".join(
            f", {text} {value:.2f}"
            for text, value in zip(others["text"], others["value"], strict=True)
        )


def _sinks(table: HeadTable, row: pd.Series) -> pd.DataFrame:
    """A head's rows of `sinks`, the one of texts as they are written first."""
    sinks = table.details[SINKS]
    own = sinks[(sinks[["stack", "layer", "head"]] == list(head_of(row))).all(axis=1)]
    return own.sort_values("text", key=lambda text: text != "as written", kind="stable")


@dataclass(frozen=True)
class SourceEnd(TrialRole):
    """Heads whose mass is mostly on the source's end token and final punctuation.

    The sink of cross attention; half of the mass is asked for, a threshold of ours.
    """

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "source-end"
    column = "source_end"
    reads = ("source_end", TRIALS)
    measured, usual_label = "the end of the source", "end of source"


@dataclass(frozen=True)
class Previous(TrialRole):
    """Heads that put most of their weight on the token before, on random text.

    Elhage et al. 2021 and Olsson et al. 2022: in random tokens nothing but the place can be
    followed. Half of the weight is asked for, as Clark et al. 2019, section 3.1, count such heads.
    """

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    name = "previous"
    column = "previous_random"
    reads = ("previous_random", TRIALS)
    measured, usual_label = "the token before", "token before"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With the survey's figure on natural text, where there is one."""
        value = table.head(head_of(row)).get("previous")
        more = "" if value is None else f", on natural text {value:.2f}"
        return super().evidence(table, row) + more


# --- Positional heads ---------------------------------------------------------------------------
# Voita et al., ACL 2019, section 5.1: at least 90% of tokens at one relative position. There is no
# author code. The null is a pick among all tokens that could be seen.


@dataclass(frozen=True)
class Positional:
    """Heads that point to one offset.

    `edges` says whether tokens that have no token at that offset, such as the first one for
    offset -1, stay in the denominator ("keep", the strict reading) or leave it ("drop").
    """

    #: The least share of tokens at the offset, also at the lower end of its interval.
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
        found = found.rename(columns={"share": "value", "chance": "baseline"})
        found = found.assign(p_adjusted=stats.holm(found["p"].to_numpy()))
        held = found[(found["low"] >= self.share) & (found["p_adjusted"] <= self.level)]
        return row_verdicts(
            held.sort_values("value", ascending=False),
            self.name,
            _offset,
            lambda row: (
                f"{_offset(row)} for {value_text(row)} of tokens, chance {row['baseline']:.2f}"
            ),
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The share of the twin's most positional head."""
        return best_of(twin, "best_offset_share", verdict.head.stack)


def _offset(row: pd.Series) -> str:
    return f"offset {row['offset']:+d}" if row["offset"] else "offset 0"
