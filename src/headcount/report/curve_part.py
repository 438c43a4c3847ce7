"""The pruning curve: for each order the points, what went at each, and how much could go."""

from __future__ import annotations

from typing import Any

import pandas as pd

from headcount.errors import HeadcountError
from headcount.heads import Head, parse_heads
from headcount.report.safe_json import figure
from headcount.report.source import Source

__all__ = ["could_go", "curve_part"]

_FIGURES = ("value", "low", "high", "delta", "delta_low", "delta_high", "p")
_PARTS = ("held-out", "all", "choose")
#: A point is as good as the whole model while the test does not say that it is worse.
_LEVEL = 0.05


def curve_part(source: Source) -> list[dict[str, Any]] | None:
    """One entry an order and scope, those that name a measure before random ones."""
    frame = source.frame("curve")
    if frame is None:
        return None
    places, found = source.places, []
    keys = [name for name in ("order", "scope", "metric", "healed") if name in frame]
    for _, rows in _one_part(frame).groupby(keys, sort=False, dropna=False):
        found.append(_order(rows.sort_values("step"), places))
    return sorted(found, key=lambda one: (one["random"], one["scope"] != "all", one["healed"]))


def could_go(curve: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    """The furthest point of any order before quality is measurably worse than the whole model's.

    An order that was judged by several metrics goes as far as the strictest of them lets it.
    """
    strictest: dict[tuple[str, bool], dict[str, Any]] = {}
    for number, order in enumerate(curve or []):
        if order["random"] or order["scope"] != "all" or not order["points"]:
            continue
        step = _last_good(order)
        gone = order["points"][0]["left"] - order["points"][step]["left"]
        key = order["id"], order["healed"]
        if key not in strictest or gone <= strictest[key]["gone"]:
            strictest[key] = {"order": number, "step": step, "gone": gone}
    return max(strictest.values(), key=lambda one: one["gone"], default=None)


def _one_part(frame: pd.DataFrame) -> pd.DataFrame:
    """Held-out examples where there are some."""
    if "part" not in frame:
        return frame
    there = set(frame["part"])
    part = next((name for name in _PARTS if name in there), None)
    return frame if part is None else frame[frame["part"] == part]


def _order(rows: pd.DataFrame, places: dict[Head, int]) -> dict[str, Any]:
    first = rows.iloc[0]
    order = str(first["order"])
    return {
        "id": order,
        "title": _title(first),
        "random": order.startswith("random"),
        "scope": str(first.get("scope", "all")),
        "metric": str(first["metric"]),
        "more": str(first.get("more", "better")),
        "part": str(first.get("part", "all")),
        "healed": bool(first.get("healed", False)),
        "n": int(first["n"]) if pd.notna(first.get("n")) else None,
        "points": [_point(row, places) for row in rows.to_dict("records")],
    }


def _title(row: pd.Series[Any]) -> str:
    """What tells a curve from the others."""
    scope = str(row.get("scope", "all"))
    parts = [str(row["order"]), scope if scope != "all" else "", str(row["metric"])]
    healed = ["healed"] if bool(row.get("healed", False)) else []
    return ", ".join([part for part in parts[:2] if part] + healed + parts[2:])


def _point(row: dict[Any, Any], places: dict[Head, int]) -> dict[str, Any]:
    figured = {name: figure(row[name]) for name in _FIGURES if pd.notna(row.get(name))}
    return {"left": int(row["heads_left"]), "gone": _gone(row.get("removed"), places), **figured}


def _gone(removed: Any, places: dict[Head, int]) -> list[int]:
    try:
        heads = parse_heads(removed) if isinstance(removed, str) else []
    except HeadcountError:  # not the names of heads: the point still has its figures
        return []
    return [places[head] for head in heads if head in places]


def _last_good(order: dict[str, Any]) -> int:
    """The last step before the first that is worse by its test; without a test, by its interval."""
    sign = 1 if order["more"] == "better" else -1
    for step, point in enumerate(order["points"]):
        if step and _is_worse(point, sign):
            return step - 1
    return len(order["points"]) - 1


def _is_worse(point: dict[str, Any], sign: int) -> bool:
    """By the test, else by the interval; what nobody could measure or test is no promise."""
    if "delta" not in point:
        return True
    if sign * point["delta"] >= 0:
        return False
    if "p" in point:
        return bool(point["p"] < _LEVEL)
    end = point.get("delta_high" if sign > 0 else "delta_low")
    return end is None or sign * end < 0
