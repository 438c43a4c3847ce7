"""What happens without one head, whether two data sets agree on it, and how soon order comes.

Michel et al. 2019, figures 1 and 2, and section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import RunError, UsageError
from headcount.plot.reading import Given, Many, by_name, need_columns, need_rows, table_of
from headcount.plot.style import (
    HAIRLINE,
    INK,
    SERIES,
    STACK_COLOURS,
    Style,
    Width,
    finish,
    key_below,
    panels,
    paper,
)
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["order_over_training", "scores_without_one_head", "two_data_sets"]


def scores_without_one_head(
    given: Many,
    column: str = "ablation",
    *,
    bins: int = 25,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How many heads leave which score when they alone are ablated; dotted is the whole model.

    Michel et al. 2019, figure 1.

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
        figure, axes = panels(1, len(tables), width=width, height=2.1)
        for panel, (name, table) in zip(axes[0], tables.items(), strict=True):
            after, whole, metric = _after(table, column)
            panel.hist(after, bins=bins, color=SERIES[0][0], gid="heads")
            style: Style = {"color": INK, "linewidth": 0.9, "linestyle": ":", "gid": "whole"}
            panel.axvline(whole, **style)
            panel.set_xlabel(f"{metric} without one head")
            panel.set_title(name)
        axes[0, 0].set_ylabel("heads")
        return finish(figure, path)


def two_data_sets(
    first: Given,
    second: Given,
    column: str = "ablation",
    *,
    names: tuple[str, str] = ("first data set", "second data set"),
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Each head's score on one data set against its score on another, with their correlation.

    Michel et al. 2019, figure 2.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> one, two = (HeadTable.of(heads, {"ablation": v}) for v in ([1, 2, 3, 4.0], [2, 1, 3, 4.0]))
    >>> two_data_sets(one, two).axes[0].get_title(loc="left")
    "Pearson's r = 0.80 [...]"
    """
    tables = table_of(first), table_of(second)
    for table in tables:
        need_columns(table, [column])
    if tables[0].heads != tables[1].heads:
        raise UsageError("The two tables have different heads; compare one model on two data sets.")
    x, y = (table.numbers(column) for table in tables)
    known = np.isfinite(x) & np.isfinite(y)
    stacks = np.array([head.stack for head in tables[0].heads])
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.8)
        panel = axes[0, 0]
        for stack in tables[0].stacks:
            own = known & (stacks == stack)
            colour, marker = STACK_COLOURS[stack]
            style: Style = {"s": 12, "alpha": 0.7, "linewidths": 0, "gid": f"stack {stack}"}
            panel.scatter(x[own], y[own], color=colour, marker=marker, label=stack, **style)
        found = stats.rank_agreement(x[known], y[known], "pearson")
        said = f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
        panel.set_title(f"Pearson's r = {said}")
        panel.set_xlabel(f"{tables[0].column(column).title}, {names[0]}")
        panel.set_ylabel(f"{tables[1].column(column).title}, {names[1]}")
        if len(tables[0].stacks) > 1:
            panel.legend()
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
    frames = settling if isinstance(settling, Mapping) else {"": settling}
    for frame in frames.values():
        need_rows(frame, ("step", "stack", "value", "low", "high"), "settling")
    with paper():
        figure, axes = panels(1, len(frames), width=width, height=2.3, sharey=True)
        for panel, (name, frame) in zip(axes[0], frames.items(), strict=True):
            for stack, rows in frame.groupby("stack", sort=False):
                _draw_order(panel, str(stack), rows)
            panel.axhline(0, color=INK, linewidth=HAIRLINE)
            panel.set_xscale("log")
            panel.set_xlabel("training step")
            panel.set_title(name)
        axes[0, 0].set_ylabel("rank agreement with the end")
        key_below(figure, *axes[0])
        return finish(figure, path)


def _draw_order(panel: Axes, stack: str, rows: pd.DataFrame) -> None:
    colour, marker = STACK_COLOURS[stack]
    columns = ("step", "value", "low", "high")
    steps, value, low, high = (rows[name].to_numpy(float) for name in columns)
    style: Style = {"marker": marker, "label": stack, "gid": f"stack {stack}"}
    panel.plot(steps, value, color=colour, **style)
    panel.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)


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
