"""Heads that rest on separators, or on the first token.

Clark et al., BlackBoxNLP 2019, section 3.2, read attention to [SEP] as a no-op; their clustering
(section 6) calls a head a separator head above a mean mass of 0.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from headcount.heads import Head
from headcount.roles.noop import RESTS, NoOp
from headcount.roles.role import Verdict, best_of
from headcount.table import HeadTable

__all__ = ["Separator"]


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
