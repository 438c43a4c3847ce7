"""What a page is made from: a run or a table read once, and its numbers packed for a browser.

Columns are whole numbers in a unit of their own, maps are bytes scaled by row; JSON is escaped so
that it can stand inside a page.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount import plugins
from headcount.errors import RunError
from headcount.records import Column, Head, HeadTable, Run, to_strict
from headcount.reports.options import Fineness

# --- What a page is made from -------------------------------------------------------------------

_PATH = re.compile(r"[\w.~ -]*(/[\w.~ -]+)+/?")


def row_head(row: Mapping[Any, Any]) -> Head:
    """The head that a row of a frame is about."""
    return Head(str(row["stack"]), int(row["layer"]), int(row["head"]))


def first_known(frame: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    """The rows of the first of these parts of the data that the frame has; all where none is."""
    there = set(frame[column]) if column in frame else set()
    part = next((name for name in names if name in there), None)
    return frame if part is None else frame[frame[column] == part]


def held_out(frame: pd.DataFrame) -> pd.DataFrame:
    """What is known of relations on the half that heads were not chosen on, where there is one."""
    held = first_known(frame, "split", ("report", "all", *frame["split"]))
    return held[held["accuracy"].notna()]


#: Parts of the examples in the order in which they are trusted: those that chose nothing first.
HELD_OUT = ("held-out", "all", "choose")


@dataclass
class Source:
    """A table with its frames, arrays and exhibits; a part that is not there is None or empty."""

    table: HeadTable
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    pairs: dict[str, np.ndarray] = field(default_factory=dict)
    #: Sentences with maps of all heads, `Exhibit` of the room `exhibits`.
    exhibits: list[Any] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    #: What its page shall show: a second run, how exact maps are, the loss that may be.
    other: Source | None = None
    maps: Fineness = "fine"
    tolerance: str | None = None

    def frame(self, name: str) -> pd.DataFrame | None:
        """A frame of the run, where it is there and has rows."""
        found = self.frames.get(name)
        return found if found is not None and len(found) else None

    @property
    def model(self) -> str:
        """What the user called the model, without the folders of a path or the owner on a hub."""
        name = str(self.table.provenance.get("model") or "this model")
        return name.rstrip("/").rsplit("/", 1)[-1] if _PATH.fullmatch(name) else name

    @property
    def places(self) -> dict[Head, int]:
        """The number of every head on the page: stacks by layers by heads, gaps counted."""
        found: dict[Head, int] = {}
        for stack, layers, heads in self.shape:
            for layer in range(layers):
                for index in range(heads):
                    found[Head(stack, layer, index)] = len(found)
        return found

    @property
    def shape(self) -> list[tuple[str, int, int]]:
        """Stack, layers and heads per layer; a pruned model keeps the places of removed heads."""
        sizes = []
        for stack in self.table.stacks:
            own = [head for head in self.table.heads if head.stack == stack]
            layers, heads = max(head.layer for head in own), max(head.index for head in own)
            sizes.append((stack, layers + 1, heads + 1))
        return sizes


def read_source(given: HeadTable | Run | str | Path, *, exhibits: bool = True) -> Source:
    """Read a run directory, or take a table alone."""
    if isinstance(given, HeadTable):
        return Source(given, frames=dict(given.details))
    run = run_at(given)
    if run is None:
        return Source(HeadTable.load(str(given)))
    if not run.has_table:
        raise RunError(f"{run.path}/ has no head table yet; run `headcount survey` into it first.")
    shown = plugins.part("exhibits") if exhibits else None
    return Source(
        table=run.read_table(),
        frames={name: run.read_frame(name) for name in run.frames},
        pairs=run.read_arrays("pairs") if (run.path / "pairs.npz").exists() else {},
        exhibits=[] if shown is None else shown.read_exhibits(run),
        record=run.record,
    )


def run_at(given: Run | str | Path) -> Run | None:
    """The run; None for a heads.parquet on its own. A folder that `prune` wrote holds its run."""
    if isinstance(given, Run):
        return given
    path = Path(given)
    if path.suffix == ".parquet":
        return None
    inner = path / "run"
    held = not (path / "run.json").exists() and (inner / "run.json").exists()
    return Run.open(inner if held else path, create=False)


# --- JSON that can lie inside a page ------------------------------------------------------------

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def safe_json(value: Any) -> str:
    """A value as JSON without ``<``, ``>`` and ``&``.

    >>> safe_json({"token": "</script>"})
    '{"token":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(to_strict(value), separators=(",", ":"), allow_nan=False)
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def figure(value: Any, digits: int = 4) -> float | int | None:
    """A number with N significant digits; None if it was not measured.

    >>> figure(0.123456), figure(float("nan")), figure(3.0)
    (0.1235, None, 3)
    """
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def figures(values: Iterable[Any], digits: int = 4) -> list[float | int | None]:
    """The same for many."""
    return [figure(value, digits) for value in values]


# --- A column's numbers in few letters ----------------------------------------------------------

#: A column is kept to a ten-thousandth of its largest value's power of ten.
_FINE = 4


def pack_column(
    values: Iterable[float], low: Iterable[float] | None = None, high: Iterable[float] | None = None
) -> dict[str, Any]:
    """``values`` with ``lo`` and ``hi``, in units of ``u``; as they are where values span far.

    >>> pack_column([0.25, float("nan")], [0.2, float("nan")], [0.31, float("nan")])
    {'u': 0.0001, 'values': [2500, None], 'lo': [500, None], 'hi': [600, None]}
    """
    exact = np.asarray(list(values), dtype=float)
    bounds = [None if one is None else np.asarray(list(one), dtype=float) for one in (low, high)]
    unit = _unit(exact)
    if unit is None:
        packed: dict[str, Any] = {"values": figures(exact)}
        rest: list[Any] = [None if one is None else figures(one, 3) for one in bounds]
    else:
        packed = {"u": unit, "values": _whole(exact / unit)}
        rest = [
            None if one is None else _whole(sign * (one / unit - np.rint(exact / unit)))
            for one, sign in zip(bounds, (-1, 1), strict=True)  # below 0: past the value
        ]
    if rest[0] is not None and rest[1] is not None:
        packed |= {"lo": rest[0], "hi": rest[1]}
    return packed


def unpack_column(column: dict[str, Any]) -> dict[str, list[float | None]]:
    """What a browser makes of it."""
    unit = column.get("u")
    if unit is None:
        return {key: column[key] for key in ("values", "lo", "hi") if key in column}
    values = column["values"]
    found = {"values": [None if v is None else v * unit for v in values]}
    for key, sign in (("lo", -1), ("hi", 1)):
        if key in column:
            pairs = zip(values, column[key], strict=True)
            found[key] = [None if d is None else (v + sign * d) * unit for v, d in pairs]
    return found


def _unit(values: np.ndarray) -> float | None:
    """A power of ten; None where the smallest values would be lost in it."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes):
        return 10.0**-_FINE
    unit = float(f"1e{math.ceil(math.log10(sizes.max())) - _FINE}")
    return unit if np.median(sizes) > 100 * unit else None


def _whole(values: np.ndarray) -> list[int | None]:
    return [round(value) if math.isfinite(value) else None for value in values.tolist()]


# --- The columns of the table for the page ------------------------------------------------------

#: Groups of columns in the order of the page; others follow as they come.
GROUPS = ("How much it matters", "How focused it is", "Where it looks", "Where it points")

_P = ("_p", "_p_adjusted", "_p_bh")


def column_part(source: Source) -> list[dict[str, Any]]:
    """Every column of numbers that was measured for some head, grouped by question."""
    described = [_column(source, name) for name in measured_columns(source.table)]
    order = {group: place for place, group in enumerate(GROUPS)}
    return sorted(described, key=lambda one: order.get(one["group"], len(order)))


def measured_columns(table: HeadTable) -> list[str]:
    """The columns of numbers, without the p values, which are shown with theirs."""
    return [name for name in table.names if _is_number(table, name) and not _is_p(table, name)]


def text_columns(source: Source) -> list[dict[str, Any]]:
    """Columns of words, such as the pattern of a head."""
    table = source.table
    return [
        {"id": name, "title": table.column(name).title, "values": _words(source, name)}
        for name in table.names
        if not _is_number(table, name) and name not in ("role", "roles")  # verdicts say them
    ]


def in_places(source: Source, values: Iterable[Any]) -> list[Any]:
    """Values of the table's rows at the page's places; NaN where the model lost a head."""
    places = source.places
    found: list[Any] = [np.nan] * len(places)
    for head, value in zip(source.table.heads, values, strict=True):
        found[places[head]] = value
    return found


def _column(source: Source, name: str) -> dict[str, Any]:
    table = source.table
    column, values = table.column(name), table.numbers(name)
    about: dict[str, Any] = {
        "id": name,
        "group": column.group or "Other columns",
        "title": column.title,
        "unit": column.unit,
        "fmt": column.format,
        "more": column.more,
        "meaning": column.meaning,
        "paper": column.paper,
        "domain": _domain(column, values),
    }
    low, high = (
        in_places(source, part[name]) if name in part else None for part in (table.low, table.high)
    )
    about |= pack_column(in_places(source, values), low, high)
    if column.diverging:
        about["diverging"] = True
    if _is_skewed(values):
        about["ramp"] = "rank"
    if column.direction:
        about["direction"] = column.direction
    if name in table.notes:
        about["note"] = table.notes[name]
    p = next((f"{name}{end}" for end in reversed(_P[:2]) if f"{name}{end}" in table.names), None)
    if p:
        about["p"] = figures(in_places(source, table.numbers(p)), 2)
        about["corrected"] = p.endswith("_adjusted")
    return about


def _is_skewed(values: np.ndarray) -> bool:
    """Whether a few sizes are so far above the rest that one ramp would leave the rest alike.

    >>> _is_skewed(np.array([0.01, 0.02, 0.01, 0.03, 9.0])), _is_skewed(np.arange(9.0))
    (True, False)
    """
    sizes = np.abs(values[np.isfinite(values)])
    return bool(len(sizes) > 4 and sizes.max() > 8 * max(float(np.median(sizes)), 1e-12))


def _domain(column: Column, values: np.ndarray) -> list[float | int | None]:
    """Where the column's colours begin and end: its own bounds, else those of its values."""
    finite = values[np.isfinite(values)]
    seen = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if column.diverging:
        return [figure(min(seen[0], 0.0)), figure(max(seen[1], 0.0) or 1.0)]
    low = seen[0] if column.range[0] is None else column.range[0]
    high = (
        seen[1] if column.range[1] is None or seen[1] < 0.6 * column.range[1] else column.range[1]
    )
    return [figure(low), figure(high if high > low else low + 1)]


def _is_number(table: HeadTable, name: str) -> bool:
    return bool(pd.api.types.is_numeric_dtype(table.frame[name].dtype))


def _is_p(table: HeadTable, name: str) -> bool:
    """Whether a column is the p value of another: it is shown with that one."""
    return any(name.endswith(end) and name.removesuffix(end) in table.names for end in _P)


def _words(source: Source, name: str) -> list[str | None]:
    values = in_places(source, source.table.frame[name].tolist())
    return [value if isinstance(value, str) else None for value in values]


# --- Maps as text for a page --------------------------------------------------------------------
# Scaled by row, the key that a query looks at most survives even in broad rows of long texts.


def deflated(data: bytes) -> str:
    """Bytes, deflated and in base64; browsers can inflate it."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


# --- A number as people print it ----------------------------------------------------------------


def printed(value: float, spec: str = ".2f") -> str:
    """By a Python format, with a minus sign in place of a hyphen, as the page's script does.

    >>> printed(-0.214, "+.2g")
    '−0.21'
    """
    return format(value, spec).replace("-", "\N{MINUS SIGN}")


_METRICS = {"bleu": "BLEU", "chrf": "chrF", "f1": "F1"}


def metric_title(name: str, *, lower_is_better: bool = False) -> str:
    """A metric as people write it, with the way that is good where it is not upwards.

    >>> metric_title("bleu"), metric_title("loss", lower_is_better=True)
    ('BLEU', 'loss (lower is better)')
    """
    return _METRICS.get(name, name) + (" (lower is better)" if lower_is_better else "")
