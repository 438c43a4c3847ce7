"""The columns of the table for the page: values in the order of heads, and their words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from headcount.columns import Column
from headcount.report.packed_column import packed
from headcount.report.safe_json import figure, figures
from headcount.report.source import Source
from headcount.table import HeadTable

__all__ = ["GROUPS", "column_part", "in_places", "measured_columns", "text_columns"]

#: Questions in the order in which the page asks them; others follow as they come.
GROUPS = ("How much it matters", "How focused it is", "Where it looks", "Where it points")

_P = ("_p", "_p_adjusted", "_p_bh")


def column_part(source: Source) -> list[dict[str, Any]]:
    """Every column of numbers that was measured for some head, grouped by question."""
    described = [_column(source, name) for name in measured_columns(source.table)]
    order = {group: place for place, group in enumerate(GROUPS)}
    return sorted(described, key=lambda one: order.get(one["group"], len(order)))


def measured_columns(table: HeadTable) -> list[str]:
    """The columns of numbers, without the p values, which stand beside theirs."""
    return [name for name in table.names if _is_number(table, name) and not _is_p(table, name)]


def text_columns(source: Source) -> list[dict[str, Any]]:
    """Columns of words, such as the pattern of a head."""
    table = source.table
    return [
        {"id": name, "title": table.column(name).title, "values": _words(source, name)}
        for name in table.names
        if not _is_number(table, name)
    ]


def in_places(source: Source, values: Iterable[Any]) -> list[Any]:
    """Values of the table's rows at the page's places; NaN where the model lost a head."""
    places = source.places
    found: list[Any] = [np.nan] * len(places)
    for head, value in zip(source.table.heads, values, strict=True):
        found[places[head]] = value
    return found


def _column(source: Source, name: str) -> dict[str, Any]:
    table = source.table
    column, values = table.column(name), table.numbers(name)
    about: dict[str, Any] = {
        "id": name,
        "group": column.group or "Other columns",
        "title": column.title,
        "unit": column.unit,
        "fmt": column.format,
        "more": column.more,
        "meaning": column.meaning,
        "paper": column.paper,
        "domain": _domain(column, values),
    }
    low, high = (
        in_places(source, part[name]) if name in part else None for part in (table.low, table.high)
    )
    about |= packed(in_places(source, values), low, high)
    if column.diverging:
        about["diverging"] = True
    if column.direction:
        about["direction"] = column.direction
    if name in table.notes:
        about["note"] = table.notes[name]
    p = next((f"{name}{end}" for end in reversed(_P[:2]) if f"{name}{end}" in table.names), None)
    if p:
        about["p"] = figures(in_places(source, table.numbers(p)), 2)
        about["corrected"] = p.endswith("_adjusted")
    return about


def _domain(column: Column, values: np.ndarray) -> list[float | int | None]:
    """Where the column's colours begin and end: its own bounds, else those of its values."""
    finite = values[np.isfinite(values)]
    seen = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if column.diverging:
        return [figure(min(seen[0], 0.0)), figure(max(seen[1], 0.0) or 1.0)]
    low = seen[0] if column.range[0] is None else column.range[0]
    high = (
        seen[1] if column.range[1] is None or seen[1] < 0.6 * column.range[1] else column.range[1]
    )
    return [figure(low), figure(high if high > low else low + 1)]


def _is_number(table: HeadTable, name: str) -> bool:
    return bool(pd.api.types.is_numeric_dtype(table.frame[name].dtype))


def _is_p(table: HeadTable, name: str) -> bool:
    """Whether a column is the p value of another: it is shown beside that one."""
    return any(name.endswith(end) and name.removesuffix(end) in table.names for end in _P)


def _words(source: Source, name: str) -> list[str | None]:
    values = in_places(source, source.table.frame[name].tolist())
    return [value if isinstance(value, str) else None for value in values]
