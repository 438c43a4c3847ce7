"""Attention sinks: heads that rest on the first token of a text.

Xiao et al. 2024; the line is that of Gu et al. 2025: a mean weight above 0.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.roles.role import Verdict, best_of
from headcount.roles.tried import ANSWERS, head_of, passed, plain_words, tried
from headcount.table import HeadTable

__all__ = ["Sink"]

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
    reads = ("sink", ANSWERS, SINKS)

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that rest; the label says which token is looked at most."""
        rows = passed(table, "sink", least=self.least, level=self.level)
        own, others = _by_head(table.details[SINKS])
        return tried(
            rows,
            self.name,
            lambda row: _label(own[head_of(row)]),
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


def _label(own: Row) -> str:
    """The first token, unless another one is looked at more often."""
    return "first token" if own["first_top"] >= own["token_top"] else f"'{own['token']}'"
