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
    parts = {part: _fill(anatomy, readings, names, part) for part in ("value", "low", "high")}
    notes = {**_notes(readings, names), **(missing or {})}
    return HeadTable.of(
        anatomy.heads,
        parts["value"],
        columns,
        low=_known(parts["low"]),
        high=_known(parts["high"]),
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
