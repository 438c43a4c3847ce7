"""One head left in a layer: what it costs, by stack and layer (Michel et al., tables 2 to 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.rooms.figures.figure import (
    SERIES,
    STACK_COLOURS,
    key_below,
    label_outer,
    layer_axis,
    sheet,
)
from research.names import title

__all__ = ["chosen_elsewhere", "draw_alone"]

Row = dict[str, Any]
LEVEL = 0.05
#: Marks that can be full or hollow.
MARKS = ("D", "v", ">", "p")
#: How far the points of one layer stand from each other.
APART = 0.16


def chosen_elsewhere(case: dict[str, Any]) -> list[Row]:
    """Rows of a case whose head was chosen on the half that does not judge.

    By the task's own metric where that was asked for, else by the loss.
    """
    rows = case.get("best single heads", case["best single heads by loss"])
    return [row for row in rows if row["chosen_on"] != "same examples"]


def draw_alone(cases: dict[str, Any], by_stack: dict[str, Any], path: Path) -> None:
    """A panel for each set of the translator by the loss, its BLEU, and all classifiers."""
    drawn = {
        f"translator, {title(name)}, loss a token": _stacks(chosen_elsewhere(case))
        for name, case in cases.items()
        if case["model"] == "translator"
    }
    if by_stack.get("layers"):
        said = f"translator, Tatoeba, BLEU of {by_stack['test']} sentences"
        drawn[said] = _stacks([_lost(row) for row in by_stack["layers"]])
    tasks = {
        title(name): [_points(row) for row in chosen_elsewhere(case)]
        for name, case in cases.items()
        if "best single heads" in case
    }
    if tasks:
        looks = zip(tasks, SERIES[3:], MARKS, strict=False)
        drawn["classifiers, points"] = {
            name: ((colour, mark), tasks[name]) for name, (colour, _), mark in looks if tasks[name]
        }
    with sheet(len(drawn), most=2, height=2.0, path=path) as (figure, panels):
        for panel, (name, series) in zip(panels, drawn.items(), strict=True):
            panel.set_title(name)
            _panel(panel, series)
        label_outer(panels, "layer", "cost of one head left")
        key_below(figure, columns=7)


def _panel(panel: Any, series: dict[str, tuple[tuple[str, str], list[Row]]]) -> None:
    """Points side by side with their intervals, full where the cost is sure."""
    panel.axhline(0, color="0.5", linewidth=0.8)
    for number, (name, ((colour, marker), rows)) in enumerate(series.items()):
        shift = APART * (number - (len(series) - 1) / 2)
        panel.errorbar([], [], color=colour, marker=marker, linestyle="", label=name)
        for row in rows:
            known = row["low"] is not None  # few examples have no interval
            ends = [[row["cost"] - row["low"]], [row["high"] - row["cost"]]] if known else None
            sure = row["p_adjusted"] is not None and row["p_adjusted"] < LEVEL
            panel.errorbar(
                [row["layer"] + shift], [row["cost"]], yerr=ends, color=colour, marker=marker,
                linewidth=0.8, markerfacecolor=colour if sure else "white",
            )  # fmt: skip
    layer_axis(panel, 1 + max(row["layer"] for _, rows in series.values() for row in rows))


def _stacks(rows: list[Row]) -> dict[str, tuple[tuple[str, str], list[Row]]]:
    stacks = dict.fromkeys(row["stack"] for row in rows)
    return {s: (STACK_COLOURS[s], [row for row in rows if row["stack"] == s]) for s in stacks}


def _lost(row: Row) -> Row:
    """A difference from the whole model as a cost.

    >>> _lost({"delta": -2.0, "low": -3.0, "high": 1.0, "layer": 0})
    {'delta': -2.0, 'low': -1.0, 'high': 3.0, 'layer': 0, 'cost': 2.0}
    """
    return row | {"cost": -row["delta"], "low": -row["high"], "high": -row["low"]}


def _points(row: Row) -> Row:
    return row | {e: None if row[e] is None else 100 * row[e] for e in ("cost", "low", "high")}
