"""What heads do: the verdicts of each head, and what a head without a role came nearest to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from headcount import plugins
from headcount.reports.parts.look import first_roles, looks
from headcount.reports.parts.numbers import Source, figure, row_head
from headcount.surveys.roles import KINDS

# --- The verdicts of each head, the strongest role first ----------------------------------------

_OFFSET = re.compile(r"offset ([+-]?\d+)")


def role_part(source: Source) -> list[list[dict[str, Any]]] | None:
    """For each head its verdicts, the one that counts first; None where roles were not judged."""
    frame = source.frames.get("roles")
    if frame is None:
        return None
    places = source.places
    found: list[list[dict[str, Any]]] = [[] for _ in places]
    for row in frame.to_dict("records"):
        if (head := row_head(row)) in places:
            found[places[head]].append(_verdict(row))
    order = first_roles()
    return [sorted(verdicts, key=lambda one: order.index(one["role"])) for verdicts in found]


def kind_part() -> list[dict[str, Any]]:
    """The closed list of roles with words and glyphs; colours are in the style sheet."""
    return [
        {
            "id": role,
            "title": "No role found" if role == "none" else look.title,
            "meaning": look.meaning,
            "d": look.glyph,
            "solid": look.solid,
            "rests": look.rests and role != "none",
            "shows": look.shows,
        }
        for role, look in looks().items()
    ]


def _verdict(row: dict[Any, Any]) -> dict[str, Any]:
    role = str(row["role"])
    known = role in KINDS
    words = str(row["evidence"] or row["label"])
    if role == "alignment" and pd.notna(row.get("baseline")):
        hits = f"{row['value']:.0%} of the time [{row['low']:.0%}, {row['high']:.0%}]"
        words = f"finds the word's source {hits}; guessing by position {row['baseline']:.0%}"
    words = "; ".join(filter(None, [words, row.get("beyond")]))
    verdict: dict[str, Any] = {
        "role": role if known else "other",
        "detail": words if known and role != "other" else f"{row['label']}: {words}",
        "label": str(row["label"]),
        "value": figure(row["value"], 3) if pd.notna(row.get("value")) else None,
    }
    for name in ("n", "p_adjusted", "control"):
        value = figure(row[name], 12 if name == "n" else 3) if pd.notna(row.get(name)) else None
        if value is not None:
            verdict[name] = value
    offset = _OFFSET.match(str(row["label"]))
    if offset:
        verdict["dir"] = int(offset[1])
    return verdict


# --- What a head without a role came nearest to --------------------------------------------------


def miss_part(source: Source, roles: list[list[dict[str, Any]]] | None) -> list[str]:
    """For each head without a role the rule that it missed by least; empty for the others.

    A rule is a share and the least that it asks for; the nearest is the largest part of that.
    """
    if roles is None:
        return []
    places, table = source.places, source.table
    best: dict[int, tuple[float, str]] = {}
    for what, column, least in _asked():
        values = table.numbers(column) if column in table.names else np.array([])
        for head, value in zip(table.heads, values, strict=False):
            said = f"{what} {value:.2f}; the rule asks {least:.2f}"
            if value >= least:
                said += " at the lower end of its 95% interval, and significance"
            _nearer(best, places[head], value / least, said)
    missed = plugins.part("missed relations")
    near, unjudged = ((), ()) if missed is None else missed(source)
    for place, part, said in near:
        _nearer(best, place, part, said)
    for place in unjudged:
        part, said = best.get(place, (0.0, ""))
        best[place] = part, f"{said}; {TOO_FEW}".removeprefix("; ")
    return ["" if own else best.get(place, (0, ""))[1] for place, own in enumerate(roles)]


def _nearer(best: dict[int, tuple[float, str]], place: int, part: float, said: str) -> None:
    if part == part and part > best.get(place, (0.0, ""))[0]:  # NaN is not equal to itself
        best[place] = part, said


#: Of a head that was asked along no relation, for none occurs often enough.
TOO_FEW = "relations not judged: too few arcs"


def _asked() -> Iterator[tuple[str, str, float]]:
    """What the rules that ask for one share measure: in words, its column, and the least."""
    from headcount.surveys.roles import all_roles

    for role in all_roles():
        yield from getattr(role, "asks", ())
