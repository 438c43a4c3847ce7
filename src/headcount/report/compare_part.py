"""Two runs side by side: what the second has otherwise, column by column and head by head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.report.column_part import column_part
from headcount.report.packed_column import unpacked
from headcount.report.safe_json import figure, figures
from headcount.report.source import Source

__all__ = ["compare_part"]

_KEYS = ("stack", "layer", "head")
_CHANGES = {
    "cosine": (
        "Cosine of maps",
        "alike",
        "Cosine of the head's maps in both models, on the same texts.",
    ),
    "js": (
        "Distance of maps",
        "changed",
        "Jensen-Shannon distance of the head's maps in both models.",
    ),
}


def compare_part(source: Source, other: Source | None) -> dict[str, Any] | None:
    """The other model's values of shared columns, and the frame of changes; None where neither."""
    changes = _changes(source)
    if other is None:
        return {"name": _second(source), "columns": {}, "changes": changes} if changes else None
    if other.shape != source.shape:
        raise UsageError(
            f"{other.model} has heads {_sizes(other)} and {source.model} {_sizes(source)}; "
            "compare two runs of one architecture."
        )
    shared = {one["id"] for one in column_part(source)}
    theirs = [one for one in column_part(other) if one["id"] in shared]
    columns = {one["id"]: figures(_unpacked(one)) for one in theirs}
    return {"name": other.model, "columns": columns, "changes": changes}


def _unpacked(column: dict[str, Any]) -> list[float]:
    return [np.nan if value is None else value for value in unpacked(column)["values"]]


def _changes(source: Source) -> list[dict[str, Any]]:
    """Cosine and distance of each head's maps as columns of the page."""
    frame = source.frame("changes")
    if frame is None:
        return []
    places = source.places
    rows = frame.drop_duplicates(list(_KEYS)).set_index(list(_KEYS))
    found = []
    for name, (title, more, meaning) in _CHANGES.items():
        if name in rows:
            found.append(_column(rows, name, title, more, meaning, places))
    return found


def _column(
    rows: pd.DataFrame, name: str, title: str, more: str, meaning: str, places: dict[Any, int]
) -> dict[str, Any]:
    def at(column: str) -> list[Any]:
        values: dict[Any, Any] = rows[column].to_dict() if column in rows else {}
        return figures([values.get(tuple(head), np.nan) for head in places])

    values = at(name)
    known = [value for value in values if value is not None]
    about = {
        "id": f"change-{name}",
        "group": "What changed",
        "title": title,
        "unit": "nats" if name == "js" else "",
        "fmt": ".3f",
        "more": more,
        "meaning": meaning,
        "paper": "Kovaleva et al. 2019, section 4.4",
        "domain": [figure(min([0.0, *known])), figure(max([*known, 1e-6]))],
        "values": values,
    }
    if f"{name}_low" in rows and f"{name}_high" in rows:
        about |= {"lo": at(f"{name}_low"), "hi": at(f"{name}_high")}
    return about


def _second(source: Source) -> str:
    for stage in (source.record.get("stages") or {}).values():
        told = (stage.get("settings") or {}).get("other") or (stage.get("settings") or {}).get(
            "second"
        )
        if told:
            return str(told)
    return "the second model"


def _sizes(source: Source) -> str:
    return ", ".join(f"{stack} {layers} x {heads}" for stack, layers, heads in source.shape)
