"""The finding as a sentence: how many heads have a role, and how many could go."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.report.curve_part import could_go
from headcount.report.packed_column import unpacked

__all__ = ["costly", "headline", "opening"]

#: A head matters by itself when its test says so after correction.
_LEVEL = 0.05


def headline(data: dict[str, Any]) -> list[str]:
    """What stands before and after the model's name; the name itself may not be broken."""
    heads = data["count"]
    roles = data["roles"]
    named = sum(bool(verdicts) for verdicts in roles) if roles is not None else None
    go = could_go(data["curve"])
    gone = f"{go['gone']} can go before quality measurably falls" if go and go["gone"] else ""
    if named is None:
        found = gone or _focused(data)
        return [f"The {heads} attention heads of ", f": {found}" if found else ""]
    has = "has" if named == 1 else "have"
    tail = f" {has} a role we can name"
    return [
        f"{named or 'None'} of the {heads} attention heads of ",
        f"{tail}; {gone}" if gone else tail,
    ]


def _focused(data: dict[str, Any]) -> str:
    """What the largest weights tell, where nothing more was measured."""
    column = next((one for one in data["columns"] if one["id"] == "confidence"), None)
    if column is None:
        return ""
    known = [value for value in unpacked(column)["values"] if value is not None]
    sharp = sum(value > 0.5 for value in known)
    give = "gives" if sharp == 1 else "give"
    return f"{sharp} {give} on average over half of their attention to one token" if sharp else ""


def costly(data: dict[str, Any]) -> list[int] | None:
    """The heads whose removal alone costs something, by the test; None where that is unknown."""
    column = next((one for one in data["columns"] if one["id"] == "ablation"), None)
    if column is None or all(p is None for p in column.get("p", ())):
        return None
    rows = zip(column["values"], column["p"], strict=True)
    return [
        place
        for place, (value, p) in enumerate(rows)
        if value is not None and p is not None and value > 0 and p < _LEVEL
    ]


def opening(data: dict[str, Any]) -> dict[str, Any]:
    """What the page shows first: the column people ask for, and a head with a story."""
    ids = [column["id"] for column in data["columns"]]
    column = next(
        (one for one in ("ablation", "gradient", "confidence") if one in ids),
        ids[0] if ids else None,
    )
    return {"head": _first_head(data, column), "col": column}


def _first_head(data: dict[str, Any], column: str | None) -> int:
    """The head that matters most among those with a role; else the first that is there."""
    gaps = set(data["absent"])
    there = [place for place in range(data["count"] + len(gaps)) if place not in gaps]
    named = [place for place in there if data["roles"] and _is_telling(data["roles"][place])]
    values = next((one["values"] for one in data["columns"] if one["id"] == column), None)
    if not values:
        return (named or there or [0])[0]
    worth = [-np.inf if value is None else value for value in values]
    return max(named or there, key=lambda place: worth[place])


def _is_telling(verdicts: list[dict[str, Any]]) -> bool:
    """A role that a single picture shows."""
    return any(
        one["role"] in ("syntactic", "alignment", "coreference", "positional") for one in verdicts
    )
