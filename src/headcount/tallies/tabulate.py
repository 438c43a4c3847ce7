"""Readings of all tallies become one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from headcount.columns import Column
from headcount.models.anatomy import Anatomy
from headcount.table import HeadTable
from headcount.tallies.tally import Reading, Tally

__all__ = ["tabulate"]


def tabulate(
    anatomy: Anatomy,
    tallies: Sequence[Tally],
    columns: Sequence[Column],
    missing: dict[str, str] | None = None,
) -> HeadTable:
    """A row for each head and a column for each description; NaN where nothing was read.

    `missing` gives the reason for columns that no tally fills.
    """
    readings = [reading for tally in tallies for reading in tally.compute()]
    names = [column.name for column in columns]
    values, low, high = (_fill(anatomy, readings, names, part) for part in ("value", "low", "high"))
    notes = {**_notes(readings, names), **(missing or {})}
    return HeadTable.of(
        anatomy.heads,
        values,
        columns,
        low=_known(_possible(low, columns)),
        high=_known(_possible(high, columns)),
        notes=notes,
    )


def _fill(
    anatomy: Anatomy, readings: Iterable[Reading], names: Sequence[str], part: str
) -> dict[str, np.ndarray]:
    filled = {name: np.full(len(anatomy.heads), np.nan) for name in names}
    for reading in readings:
        if reading.column in filled:
            filled[reading.column][anatomy.spans[reading.site]] = getattr(reading, part)
    return filled


def _possible(bounds: dict[str, np.ndarray], columns: Sequence[Column]) -> dict[str, np.ndarray]:
    """Bounds that the column can reach: few sentences give intervals that know no limits."""
    return {column.name: _clipped(bounds[column.name], column) for column in columns}


def _clipped(bounds: np.ndarray, column: Column) -> np.ndarray:
    low, high = column.range
    return bounds if low is None and high is None else np.clip(bounds, low, high)


def _known(bounds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns that have an interval somewhere."""
    return {name: values for name, values in bounds.items() if not np.isnan(values).all()}


def _notes(readings: Iterable[Reading], names: Sequence[str]) -> dict[str, str]:
    """Why a column is missing, by stack: "cross: queries and keys are different texts"."""
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    for reading in readings:
        if reading.note and reading.column in names:
            reasons[reading.column].setdefault(reading.site.stack, reading.note)
    return {
        name: "; ".join(f"{stack}: {why}" for stack, why in by_stack.items())
        for name, by_stack in reasons.items()
    }
