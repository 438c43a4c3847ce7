"""Two run directories: the same columns of the same heads, without any model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from headcount.compare.changes import Changes
from headcount.compare.role_changes import role_changes
from headcount.errors import UsageError
from headcount.run import Run
from headcount.table import HeadTable

__all__ = ["compare_runs"]


def compare_runs(first: str | Path, second: str | Path) -> Changes:
    """How the columns of the second run differ from those of the first.

    Nothing is known of single texts here, so an interval adds up what both runs are unsure of, as
    if they had read different texts: it is too wide rather than too narrow.
    """
    one, other = (Run.open(path, create=False).read_table() for path in (first, second))
    names = [
        name
        for name in one.names
        if name in other.names and name != "best_offset" and _measured(one, other, name)
    ]
    heads = [head for head in one.heads if head in set(other.heads)]
    if not heads or not names:
        missing = "head" if not heads else "column of numbers"
        raise UsageError(f"{first} and {second} have no {missing} in common; survey both alike.")
    ours, theirs = one.select(heads), other.select(heads)
    columns: dict[str, np.ndarray] = {}
    for name in names:
        columns |= _change(ours, theirs, name)
    frame = pd.DataFrame(columns)
    frame.index = ours.frame.index
    roles = None
    if "roles" in one.details and "roles" in other.details:
        roles = role_changes(one.details["roles"], other.details["roles"])
    before, after = (str(t.provenance.get("model", p)) for t, p in ((one, first), (other, second)))
    origins = {"before": one.provenance, "after": other.provenance}
    return Changes(
        before, after, frame, pd.DataFrame(), roles, one, origins, _notes(one, other, len(heads))
    )


def _measured(first: HeadTable, second: HeadTable, name: str) -> bool:
    return all(
        pd.api.types.is_numeric_dtype(table.frame[name].dtype) and table.frame[name].notna().any()
        for table in (first, second)
    )


def _change(first: HeadTable, second: HeadTable, name: str) -> dict[str, np.ndarray]:
    before, after = first.numbers(name), second.numbers(name)
    half = np.hypot(_half(first, name), _half(second, name))
    change = after - before
    return {
        name: change,
        f"{name}_low": change - half,
        f"{name}_high": change + half,
        f"{name}_before": before,
        f"{name}_after": after,
    }


def _half(table: HeadTable, name: str) -> np.ndarray:
    """Half of an interval's width; NaN where there is none."""
    if name not in table.low or name not in table.high:
        return np.full(len(table), np.nan)
    return np.asarray((table.high[name] - table.low[name]) / 2, np.float64)


def _notes(first: HeadTable, second: HeadTable, common: int) -> list[str]:
    told = []
    data = [table.provenance.get("data") for table in (first, second)]
    if data[0] != data[1]:
        told.append("The two runs read different texts; part of each change is the texts'.")
    ways = [table.provenance.get("convention") for table in (first, second)]
    if ways[0] != ways[1]:
        told.append(f"The conventions differ: {ways[0]} and {ways[1]}.")
    lost = max(len(first), len(second)) - common
    if lost:
        told.append(f"{lost} heads are in one run only and were left out.")
    return told
