"""The verdicts of each head, the strongest role first."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.report.look import LOOKS
from headcount.report.safe_json import figure
from headcount.report.source import Source

__all__ = ["kind_part", "role_part"]

_OFFSET = re.compile(r"offset ([+-]?\d+)")
_ORDER = {role: place for place, role in enumerate(LOOKS)}


def role_part(source: Source) -> list[list[dict[str, Any]]] | None:
    """For each head its verdicts; None where roles were not judged at all."""
    frame = source.frames.get("roles")
    if frame is None:
        return None
    places = source.places
    found: list[list[dict[str, Any]]] = [[] for _ in places]
    for row in frame.to_dict("records"):
        head = Head(str(row["stack"]), int(row["layer"]), int(row["head"]))
        if head in places:
            found[places[head]].append(_verdict(row))
    return [sorted(verdicts, key=lambda one: _ORDER[one["role"]]) for verdicts in found]


def kind_part() -> list[dict[str, Any]]:
    """The closed list of roles with words and glyphs; colours are in the style sheet."""
    return [
        {
            "id": role,
            "title": look.title,
            "meaning": look.meaning,
            "d": look.glyph,
            "solid": look.solid,
        }
        for role, look in LOOKS.items()
    ]


def _verdict(row: dict[Any, Any]) -> dict[str, Any]:
    role = str(row["role"])
    known = role in LOOKS and role != "none"
    said = str(row["evidence"] or row["label"])
    verdict: dict[str, Any] = {
        "role": role if known else "other",
        "detail": said if known and role != "other" else f"{row['label']}: {said}",
    }
    for name in ("n", "p_adjusted", "control"):
        value = figure(row[name], 3) if pd.notna(row.get(name)) else None
        if value is not None:
            verdict[name] = value
    offset = _OFFSET.match(str(row["label"]))
    if offset:
        verdict["dir"] = int(offset[1])
    return verdict
