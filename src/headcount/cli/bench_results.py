"""The speed promises as far as they were measured: read from benchmarks/results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["read_results", "told"]

Row = dict[str, Any]


def read_results(folder: Path | None = None) -> list[Row]:
    """Every ratio that has an aim, from the JSON files of the repository that one is in."""
    place = folder or _found()
    if place is None:
        return []
    return [
        row
        for path in sorted(place.glob("*.json"))
        for row in _rows(path.stem, json.loads(path.read_text(encoding="utf8")))
    ]


def told(rows: list[Row]) -> str:
    """The rows as lines of text."""
    lines = [
        "Ratios of times measured side by side: median of the rounds, and the middle half of them.",
        "An aim is the most it may cost beside the plain work; 'at least', how often faster.",
        "",
    ]
    for row in rows:
        span = "" if row["low"] is None else f" [{row['low']:g}, {row['high']:g}]"
        aim = f"aim {'at least ' if row['more'] == 'better' else ''}{row['aim']}"
        aim += ", missed" if _missed(row) else ""
        lines.append(f"{row['work']:28} {row['value']:8g}{span:22} {aim}  {row['what']}")
    return "\n".join(lines)


def _missed(row: Row) -> bool:
    short = row["value"] < row["aim"]
    return short if row["more"] == "better" else row["value"] > row["aim"]


def _found() -> Path | None:
    """The results here, or beside the package where it is run from its repository."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "benchmarks" / "results").is_dir():
            return root / "benchmarks" / "results"
    return None


def _rows(name: str, found: Any) -> Iterator[Row]:
    """Walk through whatever a benchmark wrote: a ratio and an aim make a row."""
    if isinstance(found, list):
        for one in found:
            yield from _rows(name, one)
    elif isinstance(found, dict):
        if "ratio" in found and "aim" in found:
            yield from _aimed(name, found)
        for key, value in found.items():
            if isinstance(value, list | dict) and key not in ("ratio", "aim"):
                yield from _rows(f"{name} {key}", value)


def _aimed(name: str, found: Row) -> Iterator[Row]:
    ratio, aim = found["ratio"], found["aim"]
    if isinstance(aim, dict):
        for key in aim:
            yield _row(f"{name}, {key}", found, ratio[key], aim[key])
    else:
        yield _row(name, found, ratio, aim)


def _row(name: str, found: Row, ratio: Row, aim: Any) -> Row:
    return {
        "work": name,
        "what": found.get("what", ""),
        "value": found.get("over_floor", ratio["median"]),
        "low": None if "over_floor" in found else ratio["low"],
        "high": None if "over_floor" in found else ratio["high"],
        "aim": aim,
        "more": found.get("more", ""),
    }
