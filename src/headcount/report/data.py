"""Everything the page shows, as one JSON value; heads are implied by the sizes of the stacks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from headcount.report.agreement_part import agreement_part
from headcount.report.column_part import column_part, measured_columns, text_columns
from headcount.report.compare_part import compare_part
from headcount.report.curve_part import could_go, curve_part
from headcount.report.exhibit_part import exhibit_part
from headcount.report.fact_part import fact_part
from headcount.report.headline import costly, headline, opening
from headcount.report.packing import Fineness
from headcount.report.pair_part import pair_part
from headcount.report.provenance_part import commands, missing_part, provenance_part
from headcount.report.ramps import ramps
from headcount.report.relation_part import relation_part
from headcount.report.role_part import kind_part, role_part
from headcount.report.source import Source

__all__ = ["page_data", "split_numbers"]

#: What a column, and what the map of heads, holds in numbers, one for each head.
_LISTS = ("u", "values", "lo", "hi", "p")
_MAP_LISTS = ("x", "y", "near")

_TITLES = {
    "enc": "Encoder self-attention",
    "dec": "Decoder self-attention",
    "cross": "Decoder to encoder",
}


def page_data(
    source: Source, other: Source | None = None, maps: Fineness = "fine"
) -> dict[str, Any]:
    """The parts of the page, each None or empty where the run does not hold it."""
    data: dict[str, Any] = {
        "model": source.model,
        "stacks": _stacks(source),
        "count": len(source.table),
        "absent": _absent(source),
        "kinds": kind_part(),
        "roles": role_part(source),
        "columns": column_part(source),
        "words": text_columns(source),
        "relations": relation_part(source),
        "map": pair_part(source),
        "agreement": agreement_part(source),
        "curve": curve_part(source),
        "exhibits": exhibit_part(source) if maps != "none" else [],
        "compare": compare_part(source, other),
        "examples": _examples(source),
        "provenance": provenance_part(source),
        "commands": commands(source),
        "missing": missing_part(source),
        "ramps": ramps(),
    }
    data |= {"costly": costly(data), "go": could_go(data["curve"])}
    return data | {
        "headline": headline(data),
        "facts": fact_part(data),
        "opening": opening(data),
    }


def split_numbers(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays readable in the page, and the long lists, one entry a head, that are packed.

    >>> column = {"id": "self", "values": [1]}
    >>> words, numbers = split_numbers({"columns": [column], "relations": None, "map": None})
    >>> words["columns"], numbers["columns"]
    ([{'id': 'self'}], [{'values': [1]}])
    """
    relations, places = data["relations"], data["map"]
    numbers = {
        "columns": [_some(column, _LISTS, True) for column in data["columns"]],
        "relations": relations and relations["heads"],
        "map": places and _some(places, _MAP_LISTS, True),
        "roles": data.get("roles"),
        "curve": data.get("curve"),
    }
    words = {key: part for key, part in data.items() if key not in ("roles", "curve")} | {
        "columns": [_some(column, _LISTS, False) for column in data["columns"]],
        "relations": relations and _some(relations, ("heads",), False),
        "map": places and _some(places, _MAP_LISTS, False),
    }
    return words, numbers


def _some(parts: dict[str, Any], keys: tuple[str, ...], wanted: bool) -> dict[str, Any]:
    return {key: part for key, part in parts.items() if (key in keys) is wanted}


def _stacks(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "id": stack,
            "title": _TITLES[stack],
            "layers": layers,
            "heads": heads,
            "silent": _silent(source, stack),
        }
        for stack, layers, heads in source.shape
    ]


def _silent(source: Source, stack: str) -> str:
    """The columns that say nothing of a stack, by the reason that the table gives."""
    table, reasons = source.table, dict[str, list[str]]()
    own = [head.stack == stack for head in table.heads]
    for name in measured_columns(table):
        if np.isnan(table.numbers(name)[own]).all():
            why = re.search(rf"(?:^|; ){stack}: ([^;]*)", table.notes.get(name, ""))
            reasons.setdefault(why[1] if why else "", []).append(table.column(name).title)
    told = [f"{', '.join(names)}{f' ({why})' if why else ''}" for why, names in reasons.items()]
    return f"for {_TITLES[stack].lower()}: {'; '.join(told)}." if told else ""


def _absent(source: Source) -> list[int]:
    """The places of heads that the model no longer has."""
    there = set(source.table.heads)
    return [place for head, place in source.places.items() if head not in there]


def _examples(source: Source) -> dict[str, Any]:
    """On how many examples, and by which metric, each score was measured."""
    found = {}
    for name, origin in source.table.origins.items():
        task, settings = origin.get("task") or {}, origin.get("settings") or {}
        if task.get("examples"):
            found[name] = {
                "n": task["examples"],
                "metric": settings.get("metric") or task.get("metric"),
            }
    return found
