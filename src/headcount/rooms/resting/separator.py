"""Heads that look at separators when there is nothing to do (Clark et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from headcount import stats
from headcount.records import Column, Head, HeadTable
from headcount.rooms.relations import Syntactic
from headcount.rooms.resting.sink import SINK
from headcount.surveys import (
    ENTROPY,
    Reading,
    SumsTally,
    TallyPlan,
    add_macro,
    over_rows,
    read_columns,
)
from headcount.surveys.roles import Verdict, best_of, head_of, kind_beside, value_text
from headcount.wiring import Needs, Sighting, uniform_entropy

SEPARATOR = kind_beside(__file__, "separator")
PUNCTUATION = kind_beside(__file__, "punctuation")


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
    """The rule for heads that follow a relation, and look at a separator elsewhere.

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
        if not len(rows):  # a treebank of a few sentences has no relation that is frequent enough
            return []
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


# Clark et al., BlackBoxNLP 2019, section 3.2, read attention to [SEP] as a no-op; their clustering
# (section 6) calls a head a separator head above a mean mass of 0.6.


@dataclass(frozen=True)
class Separator:
    """Heads whose mean mass on separators, or on the first token of an encoder, is high.

    With a treebank also heads that look there only where a word does not bear their relation
    (`noop`). The first token counts as a sink; decoders have a trial for that.
    """

    #: The least mean mass, also at the lower end of its interval.
    share: float = 0.6
    noop: NoOp = field(default_factory=NoOp)
    kind = SEPARATOR
    also = (PUNCTUATION, SINK)
    name = "separator"
    reads = ("separator",)

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return (("mass on separators", "separator", self.share),)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that look at separators, with the loss that depends on it."""
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


ENTROPY_SEPARATOR = replace(
    ENTROPY,
    name="entropy_separator",
    title="Entropy of separators",
    meaning="Mean entropy of the attention of separators.",
    paper="Clark et al. 2019, section 3.2",
    group="How broad it is",
)


SEPARATOR_BREADTH = Column(
    "separator_breadth",
    meaning="Entropy of a separator's attention as a share of what uniform attention would have.",
    paper="Clark et al. 2019, section 3.2",
    range=(0, 1),
    more="broader",
    group="How broad it is",
)


@dataclass
class SeparatorRow(SumsTally):
    """Entropy of the rows of separators, averaged over texts."""

    columns = (ENTROPY_SEPARATOR, SEPARATOR_BREADTH)
    together = True
    needs = Needs(entropy=True)

    def update(self, sighting: Sighting) -> None:
        """Add each text's mean entropy, and its share of the largest possible."""
        assert sighting.entropy is not None
        rows = sighting.queries.separator & sighting.queries.real
        most = uniform_entropy(sighting.visible)
        rows = rows & (most > 0)  # a row that sees one token alone has no breadth
        breadth = sighting.entropy / most.clamp_min(torch.finfo(torch.float32).tiny)[:, None]
        counted = sighting.weigh(rows)
        cells, totals = counted.sum(-1), {}
        for column, values in zip(self.columns, (sighting.entropy, breadth), strict=True):
            totals[column.name] = over_rows(torch.where(rows[:, None], values, 0), counted)
        add_macro(self.sums, sighting.site, totals, dict.fromkeys(totals, cells))

    def compute(self) -> list[Reading]:
        """Two readings a site."""
        return read_columns(self.sums, self.columns, "no separator asks here")


#: A survey has it where the role is judged.
ROWS = TallyPlan(lambda *_: SeparatorRow(), columns=SeparatorRow.columns, read_by="separator")
