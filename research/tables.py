"""Head tables to JSON and back: the figures of a page are drawn from what lies beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import headcount as hc
from headcount.records.heads import parse_head

__all__ = ["kept", "table"]


def kept(table: hc.HeadTable, columns: Iterable[str], digits: int = 4) -> dict[str, Any]:
    """Columns of every head as JSON has them, rounded; None for what is not known."""
    found: dict[str, Any] = {"index": [str(head) for head in table.heads]}
    for name in columns:
        values = table.numbers(name).round(digits).tolist()
        found[name] = [None if value != value else value for value in values]
    return found


def table(told: Mapping[str, Any], **about: Any) -> hc.HeadTable:
    """The table of such columns.

    >>> table({"index": ["enc.0.0"], "entropy": [1.5]}).frame["entropy"].tolist()
    [1.5]
    """
    heads = [parse_head(name) for name in told["index"]]
    values = {
        name: [float("nan") if value is None else value for value in column]
        for name, column in told.items()
        if name != "index"
    }
    return hc.HeadTable.of(heads, values, **about)
