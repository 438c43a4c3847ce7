"""Frames of figures on two halves, as tallies leave them in a table's details."""

from __future__ import annotations

from typing import Any

import pandas as pd

from headcount.records.heads import Head
from headcount.records.table import HeadTable

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


def table(columns: dict[str, list[float]] | None = None, **details: pd.DataFrame) -> HeadTable:
    low = {name: [value - 0.05 for value in values] for name, values in (columns or {}).items()}
    high = {name: [value + 0.05 for value in values] for name, values in (columns or {}).items()}
    return HeadTable.of(
        HEADS, columns or {}, low=low, high=high, details=details,
        provenance={"counts": {"rows": 12}},
    )  # fmt: skip


def halves(
    select: list[dict[str, Any]], report: list[dict[str, Any]], **common: Any
) -> pd.DataFrame:
    """Rows of both halves; each dict is a head of `enc.0`, in order, unless it says which."""
    usual = {"stack": "enc", "layer": 0, "n": 50, "p": 0.001}
    return pd.DataFrame(
        [
            {"head": place, "split": split, "p_adjusted": 0.01, **usual, **_ends(common | row)}
            for split, rows in (("select", select), ("report", report))
            for place, row in enumerate(rows)
        ]
    )


def _ends(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the ends of a narrow interval around its figures, where it has none."""
    for name, low, high in (
        ("accuracy", "low", "high"),
        ("value", "low", "high"),
        ("compared", "compared_low", "compared_high"),
    ):
        if name in row:
            row = {low: row[name] - 1e-3, high: row[name] + 1e-3, **row}
    return row
