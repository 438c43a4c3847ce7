"""`python -m research.benchmarks.promises`: every speed promise with its aim, as measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results"


def read_results(folder: Path = RESULTS) -> list[Row]:
    """Every ratio that has an aim, from the JSON files of a folder."""
    return [
        row
        for path in sorted(folder.glob("*.json"))
        for row in _rows(path.stem, json.loads(path.read_text(encoding="utf8")))
    ]


def bench_lines(rows: list[Row]) -> str:
    """The rows as lines of text."""
    lines = [
        "Ratios of times measured side by side: median of the rounds, and the middle half of them.",
        "An aim is the most it may cost against the plain work; 'at least', how often faster.",
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


if __name__ == "__main__":
    print(bench_lines(read_results()))
