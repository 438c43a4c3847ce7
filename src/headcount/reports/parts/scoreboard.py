"""How measures agree, how far heads can go, and what a second model has otherwise.

Agreement of scores (Michel et al. 2019, section 3.4), the pruning curve with the number of heads
that could go, and the comparison with a second run or with what ``headcount compare`` wrote.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError, UsageError
from headcount.pruning import at_chance, can_go, freed, in_points, point_of
from headcount.records import Head, parse_heads
from headcount.reports.parts.numbers import (
    HELD_OUT,
    Source,
    figure,
    figures,
    first_known,
    metric_title,
    printed,
    row_head,
)
from headcount.reports.parts.verdicts import role_part
from headcount.surveys.roles import KINDS

# --- Do measures of importance rank heads alike? Spearman's correlation of each pair ------------

#: Measures that the toolkit has; those that were not taken are shown as missing.
_EXPECTED = ("gradient", "ablation", "relevance", "confidence")


def agreement_part(source: Source) -> dict[str, Any] | None:
    """Measures in order, and a row for each pair and stack; None where nothing was compared."""
    frame = source.frame("agreement")
    if frame is None:
        return None
    kind = "spearman" if "spearman" in set(frame["kind"]) else str(frame["kind"].iloc[0])
    rows = frame[frame["kind"] == kind]
    there = dict.fromkeys([*rows["first"], *rows["second"]])
    ordered = [name for name in _EXPECTED if name in there or name not in source.table.names]
    return {
        "kind": kind,
        "measures": [*ordered, *(str(name) for name in there if name not in _EXPECTED)],
        "rows": [
            [
                row["first"],
                row["second"],
                row["stack"],
                *(figure(row[k], 3) for k in ("value", "low", "high")),
                int(row["heads"]),
            ]
            for row in rows.to_dict("records")
        ],
    }


def function_part(source: Source) -> dict[str, dict[str, Any]]:
    """Whether heads with a role matter more than others of their layers: by score, then by role.

    "does" and "rests" are all heads that do something, and all others that look at one place.
    """
    frame, found = source.frame("function"), dict[str, dict[str, Any]]()
    groups = {"any function": "does", "any rest": "rests"}
    for row in [] if frame is None else frame.to_dict("records"):
        role = groups.get(str(row["role"]), str(row["role"]))
        numbers = [figure(row[name], 2) for name in ("delta", "low", "high", "p_adjusted")]
        found.setdefault(str(row["score"]), {})[role] = [*numbers, str(row["answer"])]
    return found


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
        found.append(_order(rows.sort_values("step"), places))
    return sorted(found, key=lambda one: (one["random"], one["scope"] != "all", one["healed"]))


def could_go(source: Source, tolerance: str | None = None) -> dict[str, Any] | None:
    """How many heads can go by the rule of `pruning.can_go`; None where no curve says.

    `order` and `step` are places in `curve_part`; `by` has what each metric says, the strictest
    first, which decides. The tolerance is that of the run, unless another is given.
    """
    frame, curve = source.frame("curve"), curve_part(source)
    said = [] if frame is None else can_go(frame, tolerance or run_tolerance(source.record))
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


def freed_sentences(source: Source, tolerance: str | None = None) -> list[str]:
    """What can go where gates chose, and after healing, by the rule; for page and terminal."""
    said = []
    for name in ("gates", "healed"):
        frame = source.frame(name)
        found = [] if frame is None else freed(frame, tolerance or run_tolerance(source.record))
        told = [f"{one.heads or 'none'} within {one.within} ({one.most})" for one in found]
        if told:
            said.append(f"{_chosen(source, name).capitalize()}: {', '.join(told)}; 95% bounds.")
    return said


def _chosen(source: Source, name: str) -> str:
    """Who chose the heads of a frame, and what learned."""
    about = (source.record.get("stages") or {}).get(name, {}).get("settings") or {}
    steps = f" for {about['steps']:,} steps" if about.get("steps") else ""
    by = "learned gates" if about.get("by", "gates") == "gates" else f"{about['by']}"
    if name == "gates":
        return f"heads that can go, chosen by gates that learned{steps} with frozen weights"
    return f"chosen by {by}, the rest healed{steps}"


def known_heads(weights: Any) -> dict[str, Any] | None:
    """What the project found of the bundled translator; None for any other model."""
    place = files("headcount.bundle") / "translator" / "known.json"
    known: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return known if known["weights"] == weights else None


def run_tolerance(record: dict[str, Any]) -> str | None:
    """The tolerance that a run was given or pruned with; None for the usual one."""
    stages = record.get("stages") or {}
    told = (stages.get("can-go") or {}).get("settings") or {}
    pruned = (stages.get("prune") or {}).get("settings") or {}
    said = told.get("tolerance") or pruned.get("max_loss")
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
    """The places of the heads that a row of a curve names."""
    try:
        heads = parse_heads(removed) if isinstance(removed, str) else []
    except HeadcountError:  # not the names of heads: the point still has its figures
        return []
    return [places[head] for head in heads if head in places]


# --- Two models side by side --------------------------------------------------------------------

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
    name = _second_name(source, other)
    second = None if other is None else _first_roles(source, other)
    columns = _from_run(source, other) if other is not None else _from_frame(source, rows)
    return {
        "name": name,
        "said": _changes_said(source, name, second, columns),
        "second": second,
        "columns": columns,
        "changes": [_alike(source, rows, name) for name in _MAPS if name in rows],
        "roles": _roles(source),
    }


def _first_roles(source: Source, of: Source) -> list[str] | None:
    """The role that each head is counted by in a run, at the page's places; None if not judged."""
    own = role_part(of)
    if own is None:
        return None
    first = {
        head: one[0]["role"] if one else "none" for head, one in zip(of.places, own, strict=True)
    }
    return [first.get(head, "none") for head in source.places]


def _changes_said(
    source: Source, name: str, second: list[str] | None, columns: dict[str, dict[str, Any]]
) -> str:
    """What changed between two runs, in a sentence: roles, and how alike importance is."""
    said = [f"From {source.model} to {name}"]
    first = _first_roles(source, source)
    if first is not None and second is not None:
        pairs = list(zip(first, second, strict=True))
        does = [tuple(role != "none" and not KINDS[role].rests for role in one) for one in pairs]
        changed = sum(a != b for a, b in pairs)
        won, lost = does.count((False, True)), does.count((True, False))
        heads = f"{changed} of {len(pairs)} heads changed their role"
        said.append(f"{heads}: {won or 'none'} took a job up, {lost or 'none'} gave one up")
    score = next((one for one in ("ablation", "gradient") if one in columns), None)
    if score is not None:
        ours = np.array(_at(source, source.table.frame[score]), dtype=float)
        theirs = np.array(columns[score]["values"], dtype=float)
        known = np.isfinite(ours) & np.isfinite(theirs)
        if known.sum() > 2:
            ranks = [np.argsort(np.argsort(one[known])) for one in (ours, theirs)]
            alike = float(np.asarray(np.corrcoef(np.stack(ranks)))[0, 1])
            said.append(f"the order of importance agrees at {printed(alike, '.2f')}")
    return "" if len(said) == 1 else f"{', '.join(said[:2])}{'; ' + said[2] if said[2:] else ''}."


def _second_name(source: Source, other: Source | None) -> str:
    """The second model's name, which may be the first's too: one model on two texts."""
    if other is not None:
        return f"{other.model}, second run" if other.model == source.model else other.model
    stage = (source.record.get("stages") or {}).get("compare") or {}
    return str((stage.get("settings") or {}).get("after") or "the second model")


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
    return [
        [places[head], *(str(row[name]) for name in ("role", "label", "change"))]
        for row in moved
        if (head := row_head(row)) in places
    ]


def _at(source: Source, values: pd.Series[Any]) -> list[Any]:
    """A series by head at the places of the page."""
    known = values.to_dict()
    return figures([known.get(tuple(head), np.nan) for head in source.places])


def _sizes(source: Source) -> str:
    return ", ".join(f"{stack} {layers} x {heads}" for stack, layers, heads in source.shape)
