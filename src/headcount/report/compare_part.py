"""Two models side by side: what the second has otherwise, column by column and head by head.

Either a second run is given, or the run holds the frames that ``headcount compare`` writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.report.safe_json import figure, figures
from headcount.report.source import Source

__all__ = ["compare_part"]

_KEYS = ["stack", "layer", "head"]
#: Title, what more of it means, meaning.
_MAPS = {
    "cosine": ("Cosine of maps", "alike", "Cosine of a head's maps in both models, same texts."),
    "js": ("Distance of maps", "changed", "Jensen-Shannon divergence of a head's rows in both."),
}


def compare_part(source: Source, other: Source | None) -> dict[str, Any] | None:
    """The second model's values, how alike the maps are, and roles won and lost; else None."""
    frame = source.frame("changes")
    if other is None and frame is None:
        return None
    rows = pd.DataFrame() if frame is None else frame.drop_duplicates(_KEYS).set_index(_KEYS)
    return {
        "name": _second(source) if other is None else _told_apart(other.model, source.model),
        "columns": _from_run(source, other) if other is not None else _from_frame(source, rows),
        "changes": [_alike(source, rows, name) for name in _MAPS if name in rows],
        "roles": _roles(source),
    }


def _told_apart(second: str, first: str) -> str:
    """The second's name, which may be the first's too: one model on two texts."""
    return f"{second}, second run" if second == first else second


def _from_run(source: Source, other: Source) -> dict[str, dict[str, Any]]:
    """Each shared column as the other run has it."""
    ours, theirs = set(source.table.heads), set(other.table.heads)
    if not (ours <= theirs or theirs <= ours):
        raise UsageError(
            f"{other.model} has heads {_sizes(other)} and {source.model} {_sizes(source)}; "
            "compare two runs of one architecture."
        )
    table = other.table
    numeric = table.frame.select_dtypes("number").columns
    shared = [name for name in source.table.names if name in numeric]
    return {name: {"values": _at(source, table.frame[name])} for name in shared}


def _from_frame(source: Source, rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The same from ``changes.parquet``, with the intervals of the differences."""
    found = {}
    for name in source.table.names:
        if f"{name}_after" in rows:
            bounds = {
                "lo": _at(source, rows[f"{name}_low"]),
                "hi": _at(source, rows[f"{name}_high"]),
            }
            found[name] = {"values": _at(source, rows[f"{name}_after"]), **bounds}
    return found


def _alike(source: Source, rows: pd.DataFrame, name: str) -> dict[str, Any]:
    """How alike the maps are, as a column of the page."""
    title, more, meaning = _MAPS[name]
    values = _at(source, rows[name])
    known = [value for value in values if value is not None]
    about = {
        "id": f"change-{name}",
        "group": "What changed",
        "title": title,
        "unit": "nats" if name == "js" else "",
        "fmt": ".3f",
        "more": more,
        "meaning": meaning,
        "paper": "Kovaleva et al. 2019, section 4.3",
        "domain": [figure(min([0.0, *known])), figure(max([*known, 1e-6]))],
        "values": values,
    }
    if f"{name}_low" in rows and f"{name}_high" in rows:
        about |= {"lo": _at(source, rows[f"{name}_low"]), "hi": _at(source, rows[f"{name}_high"])}
    return about


def _roles(source: Source) -> list[list[Any]]:
    """Head, role, label and whether it was won or lost."""
    frame = source.frame("role_changes")
    if frame is None:
        return []
    places = source.places
    moved = frame[frame["change"].isin(["won", "lost"])].to_dict("records")
    heads = [Head(str(row["stack"]), int(row["layer"]), int(row["head"])) for row in moved]
    return [
        [places[head], str(row["role"]), str(row["label"]), str(row["change"])]
        for head, row in zip(heads, moved, strict=True)
        if head in places
    ]


def _at(source: Source, values: pd.Series[Any]) -> list[Any]:
    """A series by head at the places of the page."""
    known = values.to_dict()
    return figures([known.get(tuple(head), np.nan) for head in source.places])


def _second(source: Source) -> str:
    stage = (source.record.get("stages") or {}).get("compare") or {}
    return str((stage.get("settings") or {}).get("after") or "the second model")


def _sizes(source: Source) -> str:
    return ", ".join(f"{stack} {layers} x {heads}" for stack, layers, heads in source.shape)
