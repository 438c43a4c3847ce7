"""What the page argues: its title, the path through it, and its opening.

Everything here is a rule over what the run holds, so that it is true for any model: what was not
measured is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from headcount.reports.parts.numbers import printed, unpack_column
from headcount.reports.parts.title import costs_in_words, does, head_name
from headcount.reports.parts.verdicts import TOO_FEW
from headcount.surveys.roles import KINDS

#: A head matters by itself when its test says so after correction.
_LEVEL = 0.05
Data = dict[str, Any]


# --- Who does something, who looks at one place, who costs something -----------------------------


def costly(data: Data) -> list[int] | None:
    """Heads whose removal by itself costs something, by the test; None where that is unknown."""
    column = _column(data, "ablation")
    if column is None or all(p is None for p in column.get("p", ())):
        return None
    rows = zip(column["values"], column["p"], strict=True)
    return [
        place
        for place, (value, p) in enumerate(rows)
        if value is not None and p is not None and value > 0 and p < _LEVEL
    ]


def visible_alone(column: Data) -> float | None:
    """The smallest cost of one head that its test could have told from none, for half of the heads.

    Half of a 95% interval, widened to the level of the first of so many tests (Holm); None where
    there are no intervals.
    """
    bounds = unpack_column(column)
    ends = zip(bounds.get("lo") or (), bounds.get("hi") or (), strict=False)
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if not halves:
        return None
    tests = len(halves) if column.get("corrected") else 1
    normal = NormalDist()
    wider = normal.inv_cdf(1 - _LEVEL / 2 / tests) / normal.inv_cdf(1 - _LEVEL / 2)
    return float(np.median(halves)) * wider


def _with(data: Data, role: str) -> list[int]:
    """The heads whose first role it is: every count of the page goes by a head's first role."""
    return [
        place for place, own in enumerate(data["roles"] or ()) if own and own[0]["role"] == role
    ]


def _tested(data: Data) -> int:
    column = _column(data, "ablation") or {}
    return sum(p is not None for p in column.get("p", ()))


def _column(data: Data, name: str | None) -> Data | None:
    return next((one for one in data["columns"] if one["id"] == name), None)


def _values(data: Data, name: str | None) -> list[float | None]:
    column = _column(data, name)
    return [] if column is None else unpack_column(column)["values"]


# --- Below the title ----------------------------------------------------------------------------


def about(data: Data) -> str:
    """Model and texts, and by what a head is said to matter."""
    texts = next((value for name, value in data["provenance"] if name == "Texts"), "")
    words = f"{data['model']}{f', {texts}' if texts else ''}."
    if data["costly"] is None:
        return words
    told = data["examples"].get("ablation", {})
    column = _column(data, "ablation") or {}
    examples = f", n = {told['n']}" if "n" in told else ""
    tested = "after correction for all heads" if column.get("corrected") else "not corrected"
    least = visible_alone(column)
    unseen = "" if least is None else f"; minimum detectable cost {least:.2g}"
    metric = told.get("metric") or "quality"
    return f"{words} Cost in {metric}{examples}; p < .05, {tested}{unseen}."


# --- The path: a few sentences, each a link that selects what it speaks of ------------------------


def path_part(data: Data) -> list[Data]:
    """At most four sentences, each a `link`, the rest as `text`, and where it leads (`to`)."""
    column = opening(data)["col"]
    worth = _values(data, column)
    costs = set(data["costly"] or ())
    found = [
        *_telling(data, worth, column, costs),
        *_unknown(data, worth, costs),
        *_resting(data, costs),
        *_going(data),
        *_kinds(data, costs),
    ]
    return found[:4]


def _telling(data: Data, worth: list[float | None], column: str, costs: set[int]) -> Iterator[Data]:
    """The head that does something and matters most: what it does, and what it costs."""
    place = telling_head(data, worth)
    if place is None:
        return
    verdict = data["roles"][place][0]
    tail = f" {does(verdict)}"
    if place in costs:
        rank = 1 + sum(value is not None and value > (worth[place] or 0) for value in worth)
        most = "more than any other head" if rank == 1 else f"rank {rank} of {_tested(data)}"
        metric = data["examples"].get("ablation", {}).get("metric") or "quality"
        (lost,) = costs_in_words(metric, abs(worth[place] or 0))
        nats = f" ({printed(abs(worth[place] or 0), '.2g')} nats)" if metric == "loss" else ""
        tail += f"; without it {lost}{nats}, {most}"
    yield {"link": head_name(data, place), "text": f"{tail}.", "to": {"head": place}}


def _unknown(data: Data, worth: list[float | None], costs: set[int]) -> Iterator[Data]:
    """The costliest head that no rule names."""
    if data["roles"] is None:
        return
    nameless = [place for place in costs if not data["roles"][place]]
    if nameless:
        place = max(nameless, key=lambda one: worth[one] or 0)
        rank = 1 + sum(value is not None and value > (worth[place] or 0) for value in worth)
        few = TOO_FEW in (data.get("misses") or {place: ""})[place]
        why = f"; {TOO_FEW}." if few else ", and no rule names what it does."
        text = f" matters alone, rank {rank} of {_tested(data)}{why}"
        yield {"link": head_name(data, place), "text": text, "to": {"head": place}}


def _resting(data: Data, costs: set[int]) -> Iterator[Data]:
    """The largest group that looks at one place."""
    yield from _group(data, costs, [role for role, kind in KINDS.items() if kind.says == "place"])


def _going(data: Data) -> Iterator[Data]:
    """How many can go together by the metric that allows most, and what the strictest says."""
    by = data["go"]["by"] if data["go"] else []
    if not by or not by[-1]["gone"]:
        return
    strict, most = by[0], by[-1]
    heads = "1 head" if most["gone"] == 1 else f"{most['gone']} heads"
    text = f" can be pruned within {most['within']}, untrained"
    if strict["gone"] < most["gone"]:
        text += f"; within {strict['within']} {strict['gone'] or 'none'} (95% bound)"
    yield {"link": heads, "text": f"{text}.", "to": {"step": [most["order"], most["step"]]}}


def _kinds(data: Data, costs: set[int]) -> Iterator[Data]:
    """The largest group that does something, where there is room."""
    doing = [role for role, kind in KINDS.items() if not kind.rests]
    yield from _group(data, costs, doing)


def _group(data: Data, costs: set[int], roles: list[str]) -> Iterator[Data]:
    sizes = {role: _with(data, role) for role in roles}
    role = max(sizes, key=lambda one: len(sizes[one]), default=None)
    if role is None or len(sizes[role]) < 2:
        return
    verb, _, rest = KINDS[role].meaning.partition(" ")
    costly_ones = len(costs & set(sizes[role]))
    matter = f"; {costly_ones or 'none'} matter{'s' if costly_ones == 1 else ''} alone"
    matter = "" if data["costly"] is None else matter
    plural = f"{verb[:-3] + 'y' if verb.endswith('ies') else verb.removesuffix('s')} {rest}"
    yield {"link": f"{len(sizes[role])} heads", "text": f" {plural}{matter}.", "to": {"role": role}}


# --- What the page shows first ------------------------------------------------------------------


def opening(data: Data) -> Data:
    """The column of most interest, and a head worth seeing; in the colours of roles, if judged."""
    ids = [column["id"] for column in data["columns"]]
    column = next(
        (one for one in ("ablation", "gradient", "confidence") if one in ids),
        ids[0] if ids else None,
    )
    gaps = set(data["absent"])
    there = [place for place in range(data["count"] + len(gaps)) if place not in gaps]
    worth = _values(data, column)
    head = telling_head(data, worth)
    if head is None:
        ranked = [-np.inf if value is None else value for value in worth]
        head = (
            max(there, key=lambda place: ranked[place], default=0) if ranked else (there or [0])[0]
        )
    return {"head": head, "col": column, "paint": "role" if any(data["roles"] or ()) else column}


def telling_head(data: Data, worth: list[float | None]) -> int | None:
    """Of the most telling role the head that costs most alone; the clearest, if no cost is known.

    >>> roles = [[{"role": "induction", "value": 0.3}], [{"role": "induction", "value": 0.9}]]
    >>> telling_head({"roles": roles, "costly": None}, [2.0, 1.0])
    1
    """
    telling = {role: kind.telling for role, kind in KINDS.items() if kind.telling is not None}
    for role in sorted(telling, key=lambda role: telling[role]):
        own = _with(data, role)
        if own and data["costly"]:
            return max(own, key=lambda one: worth[one] or 0.0)
        if own:
            return max(own, key=lambda one: data["roles"][one][0]["value"] or 0.0)
    return None
