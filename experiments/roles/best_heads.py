"""The best head for each dependency relation, beside the best fixed offset: Clark's Table 1.

Clark et al., BlackBoxNLP 2019, Table 1, took both from the sentences they report. Here head and
offset are chosen on one half of the sentences and judged on the other; what choosing and judging on
all of them gives stands beside it, under the name *naive*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headcount.records.columns import NA
from headcount.records.heads import STACKS, Head

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["COLUMNS", "best_heads", "draw_best_heads"]

_KEY = ["stack", "relation", "direction"]
_NAMES = ["head", "direction"]
_FIGURES = ["n", "accuracy", "low", "high", "baseline", "offset", "p_adjusted"]
_NAIVE = [*_NAMES, *_FIGURES[:-1]]

#: What was chosen on one half and judged on the other, then what the naive way gives.
COLUMNS = ["stack", "relation", *_NAMES, *_FIGURES, *(f"naive_{name}" for name in _NAIVE)]


def best_heads(
    relations: pd.DataFrame,
    *,
    support: int = 100,
    directions: Collection[str] | None = None,
    without: Collection[str] = ("root", "punct"),
) -> pd.DataFrame:
    """One row for each stack and relation with at least `support` arcs, `all` and then by arcs.

    `relations` is the frame of that name. The best head is the best in any of the directions that
    have so many arcs: a stack that looks back only sees a relation one way more than the other.
    """
    frame = relations[~relations["relation"].isin(list(without))]
    if directions is not None:
        frame = frame[frame["direction"].isin(list(directions))]
    frame = frame[_arcs(frame) >= support]
    rows = [
        _row(str(stack), str(relation), group)
        for (stack, relation), group in frame.groupby(["stack", "relation"], sort=False)
    ]
    rows.sort(key=_place)
    return pd.DataFrame(rows, columns=COLUMNS)


def _arcs(frame: pd.DataFrame) -> pd.Series:
    """For each row, the arcs of its relation and direction on all sentences."""
    there = frame["n"].where(frame["split"] == "all")
    return there.groupby([frame[name] for name in _KEY]).transform("max")


def _place(row: dict[str, Any]) -> tuple[int, bool, float]:
    return STACKS.index(row["stack"]), row["relation"] != "all", -row["naive_n"]


def _row(stack: str, relation: str, group: pd.DataFrame) -> dict[str, Any]:
    """The head chosen on `select` as it does on `report`, and the naive best of all."""
    by_split = dict(iter(group.groupby("split")))
    naive, chosen = _best(by_split["all"]), _best(by_split.get("select"))
    judged = None if chosen is None else _same_head(by_split.get("report"), chosen)
    return {
        "stack": stack,
        "relation": relation,
        **_told(judged, [*_NAMES, *_FIGURES]),
        **{f"naive_{name}": value for name, value in _told(naive, _NAIVE).items()},
    }


def _best(rows: pd.DataFrame | None) -> pd.Series | None:
    return None if rows is None else rows.iloc[int(rows["accuracy"].argmax())]


def _same_head(rows: pd.DataFrame | None, chosen: pd.Series) -> pd.Series | None:
    if rows is None:
        return None
    key = ["layer", "head", "direction"]
    same = rows[(rows[key] == chosen[key]).all(axis=1)]
    return same.iloc[0] if len(same) else None


def _told(row: pd.Series | None, names: list[str]) -> dict[str, Any]:
    """The names and figures of a row; nothing where there is no row."""
    if row is None:
        return {name: NA if name in _NAMES else np.nan for name in names}
    head = str(Head(row["stack"], int(row["layer"]), int(row["head"])))
    return {name: row[name] for name in names} | {"head": head}


def draw_best_heads(best: pd.DataFrame) -> Table:
    """The table for a terminal; rich prints it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in _TITLES:
        table.add_column(title, justify="left" if title in _WORDS else "right", no_wrap=True)
    for row in best.to_dict("records"):
        # Text, never strings: rich would read a relation named "[red]" as markup.
        table.add_row(*(Text(cell) for cell in _cells(row)))
    return table


_TITLES = ("relation", "head", "direction", "arcs", "accuracy", "95%", "offset", "p", "naive")
_WORDS = {"relation", "head", "direction"}


def _cells(row: Mapping[Any, Any]) -> list[str]:
    return [
        row["relation"],
        row["head"],
        row["direction"],
        NA if np.isnan(row["n"]) else f"{row['n']:,.0f}",
        _percent(row["accuracy"]),
        NA if np.isnan(row["low"]) else f"{_percent(row['low'])}–{_percent(row['high'])}",
        NA if np.isnan(row["offset"]) else f"{_percent(row['baseline'])} ({row['offset']:+.0f})",
        NA if np.isnan(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}",
        f"{_percent(row['naive_accuracy'])} {row['naive_head']}",
    ]


def _percent(share: float) -> str:
    return NA if np.isnan(share) else f"{100 * share:.1f}"
