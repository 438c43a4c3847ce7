"""The pruning curve on the page, and how many heads could go."""

from __future__ import annotations

from typing import Any

import pandas as pd

from headcount.errors import HeadcountError
from headcount.pruning import at_chance, can_go, in_points, point_of
from headcount.records import Head, parse_heads
from headcount.reports.parts.numbers import HELD_OUT, Source, figure, first_known, metric_title

# --- The pruning curve --------------------------------------------------------------------------

_FIGURES = ("value", "low", "high", "delta", "delta_low", "delta_high", "p", "bound")


def curve_part(source: Source) -> list[dict[str, Any]] | None:
    """One entry an order and scope, those that name a measure before random ones."""
    frame = source.frame("curve")
    if frame is None:
        return None
    places, found = source.places, []
    keys = [name for name in ("order", "scope", "metric", "healed") if name in frame]
    known = in_points(first_known(frame, "part", HELD_OUT))
    for _, rows in known.groupby(keys, sort=False, dropna=False):
        if rows["step"].min() > 0:  # the whole model, before what is left was trained
            same = (known[["order", "metric"]] == rows[["order", "metric"]].iloc[0]).all(axis=1)
            rows = pd.concat([known[same & (known["step"] == 0)].assign(healed=True), rows])
        found.append(_order(rows.sort_values("step"), places))
    return sorted(found, key=lambda one: (one["random"], one["scope"] != "all", one["healed"]))


def could_go(source: Source) -> dict[str, Any] | None:
    """How many heads can be pruned by the rule of `pruning.can_go`; None where no curve says.

    `order` and `step` are places in `curve_part`; `by` has what each metric says, the strictest
    first, which decides. The tolerance is `run_tolerance`.
    """
    frame, curve = source.frame("curve"), curve_part(source)
    said = [] if frame is None else can_go(frame, run_tolerance(source))
    if not said or curve is None:
        return None
    by = []
    for one in said:
        number = next(
            number
            for number, order in enumerate(curve)
            if (order["id"], order["scope"], order["healed"]) == (one.order, "all", one.healed)
            and order["metric"] == metric_title(one.metric)
        )
        left = len(source.table) - one.heads
        steps = [
            step for step, point in enumerate(curve[number]["points"]) if point["left"] == left
        ]
        about = {name: value for name, value in one.to_dict().items() if name != "names"}
        own, point = ("tolerance", "bound", "visible"), point_of(one.metric)
        about |= {name: figure(about[name] / point) for name in own}
        about["metric"] = metric_title(one.metric)
        by.append(about | {"order": number, "step": (steps or [0])[0], "gone": one.heads})
    return {**by[0], "by": by}


def run_tolerance(source: Source) -> str | None:
    """The given tolerance, else that of the run's story or pruning; None for the default."""
    stages = source.record.get("stages") or {}
    told = (stages.get("can-go") or {}).get("settings") or {}
    pruned = (stages.get("prune") or {}).get("settings") or {}
    said = source.tolerance or told.get("tolerance") or pruned.get("max_loss")
    return None if said is None else str(said)


def _order(rows: pd.DataFrame, places: dict[Head, int]) -> dict[str, Any]:
    first = rows.iloc[0]
    order = str(first["order"])
    return {
        "id": order,
        "title": _title(first),
        "random": order.startswith("random"),
        "scope": str(first.get("scope", "all")),
        "metric": metric_title(str(first["metric"])),
        "more": str(first.get("more", "better")),
        "part": str(first.get("part", "all")),
        "healed": bool(first.get("healed", False)),
        "n": int(first["n"]) if pd.notna(first.get("n")) else None,
        "points": [_point(row, places) for row in rows.to_dict("records")],
    }


def _title(row: pd.Series[Any]) -> str:
    """What sets a curve apart from the others."""
    scope = str(row.get("scope", "all"))
    healed = "healed" if bool(row.get("healed", False)) else ""
    return ", ".join(filter(None, [str(row["order"]), scope if scope != "all" else "", healed]))


def _point(row: dict[Any, Any], places: dict[Head, int]) -> dict[str, Any]:
    figured = {name: figure(row[name]) for name in _FIGURES if pd.notna(row.get(name))}
    figured |= {"chance": True} if at_chance(row) else {}
    return {
        "left": int(row["heads_left"]),
        "gone": places_gone(row.get("removed"), places),
        **figured,
    }


def places_gone(removed: Any, places: dict[Head, int]) -> list[int]:
    """The places of removed heads, by their names with commas between."""
    try:
        heads = parse_heads(removed) if isinstance(removed, str) else []
    except HeadcountError:  # not the names of heads: the point still has its figures
        return []
    return [places[head] for head in heads if head in places]
