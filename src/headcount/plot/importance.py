"""What happens without one head, and how soon the order of heads is there.

Michel et al. 2019, figure 1 and section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import RunError
from headcount.plot.layout import key_below, label_outer, wrapped
from headcount.plot.needs import need_columns, need_rows
from headcount.plot.reading import Many, by_name, frame_of, frames_by_name, table_of
from headcount.plot.style import HAIRLINE, INK, SERIES, STACK_COLOURS, Style, Width, finish, paper
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["order_over_training", "scores_without_one_head"]


def scores_without_one_head(
    given: Many,
    column: str = "ablation",
    *,
    bins: int = 25,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How many heads leave which score when they alone are ablated; dotted is the whole model.

    Michel et al. 2019, figure 1. A score that takes no more than `bins` steps has a bar a step.

    >>> from headcount import Column, Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"ablation": [0.5, -0.5]},
    ...     [Column("ablation", unit="bleu")],
    ...     origins={"ablation": {"settings": {"metric": "bleu", "baseline": 30.0}}})
    >>> figure = scores_without_one_head(table, bins=2)
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [1.0, 1.0]
    """
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    with paper():
        from matplotlib.ticker import MaxNLocator

        metrics: list[str] = []
        figure, drawn = wrapped(len(tables), most=4, width=width, height=2.1)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            after, whole, metric = _after(table, column)
            panel.yaxis.set_major_locator(MaxNLocator(integer=True))
            panel.xaxis.set_major_locator(MaxNLocator(4 if len(tables) < 3 else 3))
            panel.hist(after, bins=_edges(after, bins), color=SERIES[0][0], gid="heads")
            style: Style = {"color": INK, "linewidth": 0.9, "linestyle": ":", "gid": "whole"}
            panel.axvline(whole, **style)
            panel.set_title(name)
            metrics.append(metric)
        label_outer(drawn, "", "heads")
        for panel, metric in zip(drawn, metrics, strict=True):
            panel.set_xlabel(f"{metric} without one head" if len(drawn) < 3 else metric)
        return finish(figure, path)


def order_over_training(
    settling: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """How soon the order of heads is the one that training ends with; a panel a training.

    After Michel et al. 2019, section 6; `headcount.importance.dynamics.settling` makes the frame.

    >>> frame = pd.DataFrame({"step": [10, 100], "stack": "all", "value": [0.4, 1.0],
    ...                       "low": [0.2, 1.0], "high": [0.6, 1.0]})
    >>> order_over_training(frame).axes[0].lines[0].get_ydata().tolist()
    [0.4, 1.0]
    """
    frames = {n: frame_of(one, "settling") for n, one in frames_by_name(settling).items()}
    for frame in frames.values():
        need_rows(frame, ("step", "stack", "value", "low", "high"), "settling", known="value")
    with paper():
        figure, drawn = wrapped(len(frames), width=width, height=2.3, sharey=True)
        for panel, (name, frame) in zip(drawn, frames.items(), strict=True):
            for stack, rows in frame.groupby("stack", sort=False):
                _draw_order(panel, str(stack), rows)
            panel.axhline(0, color=INK, linewidth=HAIRLINE)
            panel.set_xscale("log")
            panel.set_title(name)
        label_outer(drawn, "training step", "rank agreement with the end")
        key_below(figure, *drawn)
        return finish(figure, path)


def _draw_order(panel: Axes, stack: str, rows: pd.DataFrame) -> None:
    colour, marker = STACK_COLOURS[stack]
    columns = ("step", "value", "low", "high")
    steps, value, low, high = (rows[name].to_numpy(float) for name in columns)
    style: Style = {"marker": marker, "label": stack, "gid": f"stack {stack}"}
    panel.plot(steps, value, color=colour, **style)
    panel.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)


def _edges(after: np.ndarray, bins: int) -> list[float]:
    """Edges of bars: around each step where a score, such as accuracy, moves in a few steps.

    >>> [round(edge, 2) for edge in _edges(np.array([0.5, 0.7, 0.6, 0.5]), 25)]
    [0.45, 0.55, 0.65, 0.75]
    """
    told = np.unique(after.round(6))
    step = np.diff(told).min() if len(told) > 1 else 0.0
    count = round((told[-1] - told[0]) / step) + 1 if step else 0
    if not 0 < count <= bins:
        return [float(edge) for edge in np.histogram_bin_edges(after, bins)]
    return [float(told[0] + step * (place - 0.5)) for place in range(count + 1)]


def _after(table: HeadTable, column: str) -> tuple[np.ndarray, float, str]:
    """The scores without each head, the whole model's score, and the metric."""
    need_columns(table, [column])
    settings = table.origins.get(column, {}).get("settings") or {}
    if "baseline" not in settings:
        raise RunError(
            f"Column '{column}' does not say how the whole model scored; "
            "`headcount score MODEL --task TASK --by ablation -o RUN` keeps it."
        )
    whole = float(settings["baseline"])
    metric = table.column(column).unit or str(settings.get("metric", "score"))
    cost = table.numbers(column)
    cost = cost[np.isfinite(cost)]
    costs_more = metric in ("loss", "perplexity")  # the cost of a head is more of these
    return (whole + cost if costs_more else whole - cost), whole, metric
