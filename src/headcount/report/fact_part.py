"""The figures beside the title: how many heads there are, have a role, matter, and could go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headcount.report.curve_part import could_go
from headcount.report.printed import printed

__all__ = ["fact_part"]

Fact = dict[str, Any]


def fact_part(data: dict[str, Any]) -> list[Fact]:
    """Four figures, each with what it counts and a note; without `n` where nobody measured it."""
    return [_heads(data), _named(data), _costs(data), _going(data)]


def _heads(data: dict[str, Any]) -> Fact:
    count, lost = data["count"], len(data["absent"])
    note = _sizes(data["stacks"]) + (f"; {lost} were removed before" if lost else "")
    return {"id": "heads", "n": str(count), "of": "head" if count == 1 else "heads", "note": note}


def _sizes(stacks: list[dict[str, Any]]) -> str:
    """Layers by heads, said once where all stacks have the same.

    >>> _sizes([{"id": "enc", "layers": 6, "heads": 8}, {"id": "dec", "layers": 6, "heads": 8}])
    'enc, dec: each 6 layers × 8 heads'
    """
    sizes = {(stack["layers"], stack["heads"]) for stack in stacks}
    if len(sizes) > 1:
        return ", ".join(f"{one['id']} {one['layers']} × {one['heads']}" for one in stacks)
    ((layers, heads),) = sizes
    before = f"{', '.join(one['id'] for one in stacks)}: each " if len(stacks) > 1 else ""
    return f"{before}{layers} layers × {heads} heads"


def _named(data: dict[str, Any]) -> Fact:
    if data["roles"] is None:
        return _unknown(data, "roles", "with a role")
    named = sum(bool(verdicts) for verdicts in data["roles"])
    return {"id": "roles", "n": str(named), "of": "with a role"}


def _costs(data: dict[str, Any]) -> Fact:
    if data["costly"] is None:
        return _unknown(data, "ablation", "matter alone")
    column = next(one for one in data["columns"] if one["id"] == "ablation")
    costly, about = len(data["costly"]), data["examples"].get("ablation", {})
    known = sum(p is not None for p in column["p"])
    examples = f", n = {about['n']}" if "n" in about else ""
    tested = "corrected for all heads" if column.get("corrected") else "not corrected"
    return {
        "id": "ablation",
        "n": str(costly),
        "of": "matters alone" if costly == 1 else "matter alone",
        "note": f"Shut one at a time, {known - costly} of {known} have no measurable cost in "
        f"{about.get('metric') or 'quality'} (p < .05, {tested}{examples}).",
    }


def _going(data: dict[str, Any]) -> Fact:
    go = data["go"]
    if go is None:
        return _unknown(data, "curve", "could go")
    order = data["curve"][go["order"]]
    felt = not go["gone"] and len(order["points"]) > 1
    point = order["points"][1 if felt else go["step"]]
    note = " ".join([_told(order, point, felt), *_by_others(data["curve"], order, go["gone"])])
    name = "go" if go["gone"] else "curve"
    return {"id": name, "n": str(go["gone"]), "of": "could go", "note": note}


def _by_others(curve: list[dict[str, Any]], strict: dict[str, Any], gone: int) -> Iterator[str]:
    """What metrics that notice less would say; the strictest decides."""
    for metric in dict.fromkeys(one["metric"] for one in curve):
        own = [one for one in curve if one["metric"] == metric]
        go = could_go(own)
        if metric != strict["metric"] and go and go["gone"] > gone:
            examples = f" (n = {own[go['order']]['n']})" if own[go["order"]]["n"] else ""
            yield f"By {metric} alone, {go['gone']} could{examples}."


def _told(order: dict[str, Any], point: dict[str, Any], felt: bool) -> str:
    """What the point says that heads could go to, or the first where none could."""
    tested = "p" in point or "delta_low" in point
    first = f"The first step {'is felt already' if tested else 'was not tested'}, in"
    heads = f"{point['left']} head{'' if point['left'] == 1 else 's'}"
    value = printed(point["value"], ".3g") if "value" in point else "not measured"
    examples = f", n = {order['n']}" if order["n"] else ""
    return (
        f"{first if felt else 'In'} the order of {order['id']}: {order['metric']} {value} with "
        f"{heads}{_change(point)}{examples}."
    )


def _change(point: dict[str, Any]) -> str:
    if "delta" not in point:
        return ""
    bounds = [point[end] for end in ("delta_low", "delta_high") if end in point]
    told = f" [{', '.join(printed(end, '+.2g') for end in bounds)}]" if len(bounds) == 2 else ""
    return f" ({printed(point['delta'], '+.2g')}{told})"


def _unknown(data: dict[str, Any], key: str, of: str) -> Fact:
    """A figure that was not measured, with the command that would."""
    how = next((how for name, _, how in data["missing"] if name == key), "")
    return {"id": key, "n": None, "of": of, "how": how}
