"""The lines of a pruning curve: which rows belong to one line, and how it looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.plot.needs import need_rows
from headcount.plot.reading import Given, frame_of
from headcount.plot.style import GREY, HAIRLINE, INK, SERIES, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "curve_of",
    "draw_line",
    "draw_orders",
    "draw_whole",
    "is_healed",
    "looks_of",
    "metric_in_words",
    "of_metric",
    "of_order",
    "percent_left",
]

_NEEDED = ("order", "scope", "step", "heads_left", "metric", "value", "low", "high")
_PARTS = ("held-out", "all", "choose")


def curve_of(given: Given | pd.DataFrame, metric: str | None = None) -> pd.DataFrame:
    """The rows of a curve on held-out examples, of one metric: the first where none is named."""
    frame = frame_of(given, "curve")
    need_rows(frame, _NEEDED, "a pruning curve", known="value")
    if "part" in frame:
        part = next((name for name in _PARTS if (frame["part"] == name).any()), None)
        frame = frame if part is None else frame[frame["part"] == part]
    return of_metric(frame, metric)


def of_metric(frame: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    """The rows of one metric; by default the first that is not the loss."""
    there = list(dict.fromkeys(frame["metric"]))
    if metric is None:
        metric = next((name for name in there if name != "loss"), there[0])
    if metric not in there:
        raise UsageError(f"The curve has no metric '{metric}'; it has {', '.join(there)}.")
    return frame[frame["metric"] == metric]


def of_order(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """The rows of one order."""
    there = list(dict.fromkeys(rows["order"]))
    if order not in there:
        raise UsageError(f"The curve has no order '{order}'; it has {', '.join(there)}.")
    return rows[rows["order"] == order]


def metric_in_words(rows: pd.DataFrame) -> str:
    """The metric, with the way that is good where it is not upwards."""
    name = str(rows["metric"].iloc[0])
    worse = "more" in rows and (rows["more"] == "worse").any()
    return f"{name} (lower is better)" if worse else name


def looks_of(orders: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each order, the same in all panels; all chance looks the same."""
    named = [name for name in dict.fromkeys(orders) if not name.startswith("random")]
    return {name: SERIES[place % len(SERIES)] for place, name in enumerate(named)}


def draw_orders(panel: Axes, rows: pd.DataFrame, looks: Mapping[str, tuple[str, str]]) -> None:
    """A line with its interval for each order; orders by chance are thin, under one name."""
    healed = is_healed(rows)
    told = False
    for order, own in rows[~healed].groupby("order", sort=False):
        if str(order) in looks:
            draw_line(panel, own, str(order), *looks[str(order)])
        else:
            draw_line(panel, own, "" if told else "random", GREY, "", chance=True)
            told = True
    for order, own in rows[healed].groupby("order", sort=False):
        style: Style = {"linestyle": "--", "marker": "*", "markersize": 5, "gid": f"healed {order}"}
        ordered = own.sort_values("heads_left")
        style |= {"color": looks.get(str(order), (GREY, ""))[0], "label": f"{order}, healed"}
        panel.plot(ordered["heads_left"].to_numpy(), ordered["value"].to_numpy(float), **style)


def draw_line(
    panel: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str, *, chance: bool = False
) -> None:
    """One order: its values against the heads left, with a band of 95%."""
    own = rows.sort_values("step").drop_duplicates("heads_left")
    x, y = own["heads_left"].to_numpy(), own["value"].to_numpy(float)
    name = str(own["order"].iloc[0])
    style: Style = {"color": colour, "marker": marker or None, "gid": f"order {name}"}
    panel.plot(x, y, linewidth=0.7 if chance else 1.2, label=label or f"_{name}", **style)
    if not chance:
        bounds = own["low"].to_numpy(float), own["high"].to_numpy(float)
        panel.fill_between(x, *bounds, color=colour, alpha=0.15, linewidth=0)


def draw_whole(panel: Axes, rows: pd.DataFrame) -> None:
    """A dotted line where the whole model is."""
    whole = rows[rows["step"] == 0]
    if len(whole):
        style: Style = {"color": INK, "linewidth": HAIRLINE, "linestyle": ":", "gid": "whole"}
        panel.axhline(float(whole["value"].iloc[0]), **style)


def percent_left(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Percent of heads removed, and what is left of the whole model's score in percent."""
    own = rows.sort_values("step").drop_duplicates("heads_left")
    left, value = own["heads_left"].to_numpy(float), own["value"].to_numpy(float)
    return 100 * (1 - left / left[0]), 100 * value / value[0]


def is_healed(rows: pd.DataFrame) -> np.ndarray:
    """Which rows are of models that were trained on after their heads went."""
    if "healed" not in rows:
        return np.zeros(len(rows), dtype=bool)
    return rows["healed"].to_numpy(dtype=bool)
