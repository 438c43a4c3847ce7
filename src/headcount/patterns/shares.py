"""Shares of patterns read off a table: the most frequent one of a head, and means of layers."""

from __future__ import annotations

import pandas as pd

from headcount.patterns.kinds import COLUMNS, PATTERN, PATTERNS
from headcount.table import HeadTable

__all__ = ["layer_shares", "with_pattern"]

_NAMES = [column.name for column in COLUMNS]


def with_pattern(table: HeadTable) -> HeadTable:
    """The table with the column `pattern`: the most frequent one, the first of equals, or NA."""
    shares = table.frame[_NAMES]
    known = shares.notna().all(axis=1)
    most = [
        PATTERNS[int(row.argmax())] if there else None
        for row, there in zip(shares.to_numpy(), known, strict=True)
    ]
    about = {"notes": {"pattern": table.notes[_NAMES[0]]} if _NAMES[0] in table.notes else {}}
    return table.join(HeadTable.of(table.heads, {"pattern": most}, [PATTERN], **about))


def layer_shares(table: HeadTable) -> pd.DataFrame:
    """The mean share of each pattern over the heads of a layer: index (stack, layer).

    >>> from headcount.heads import Head
    >>> shares = {name: [float(name == "pattern_block")] for name in _NAMES}
    >>> layer_shares(HeadTable.of([Head("enc", 0, 0)], shares))["block"].tolist()
    [1.0]
    """
    shares = table.frame[_NAMES].groupby(level=["stack", "layer"], sort=False).mean()
    shares.columns = list(PATTERNS)
    return shares.dropna(how="all")
