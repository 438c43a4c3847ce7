"""Importance: scores without one head, two scores against each other, and over training.

Michel et al. 2019, figures 1, 2 and 5; Voita et al. 2019, section 4; Kovaleva et al. 2019, figures
8 and 9: what a task gains when heads are disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import RunError, UsageError
from headcount.records import HeadTable
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Given, Many, Style, Width
from headcount.rooms.figures.grids import colour_bar, draw_cells, scale_of
from headcount.rooms.figures.pruning_figures import curve_of, of_order, percent_left
from headcount.stats import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- What happens without one head, and how soon the order of heads is there --------------------
# Michel et al. 2019, figure 1 and section 6.


def scores_without_one_head(
    given: Many,
    column: str = "ablation",
    *,
    bins: int = 25,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How many heads leave which score when only they are ablated; dotted is the whole model.

    Michel et al. 2019, figure 1. A score that takes no more than `bins` steps has a bar a step.

    >>> from headcount import Column, Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"ablation": [0.5, -0.5]},
    ...     [Column("ablation", unit="bleu")],
    ...     origins={"ablation": {"settings": {"metric": "bleu", "baseline": 30.0}}})
    >>> figure = scores_without_one_head(table, bins=2)
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [1.0, 1.0]
    """
    tables = draw.tables_of(given, [column])
    with draw.paper():
        from matplotlib.ticker import MaxNLocator

        metrics: list[str] = []
        figure, drawn = draw.wrapped(len(tables), most=4, width=width, height=2.1)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            after, whole, metric = _after(table, column)
            panel.yaxis.set_major_locator(MaxNLocator(integer=True))
            panel.xaxis.set_major_locator(MaxNLocator(4 if len(tables) < 3 else 3))
            panel.hist(after, bins=_edges(after, bins), color=draw.SERIES[0][0], gid="heads")
            style: Style = {"color": draw.INK, "linewidth": 0.9, "linestyle": ":", "gid": "whole"}
            panel.axvline(whole, **style)
            worse = int((after < whole - 1e-9).sum())
            about = f"whole model {whole:.3g}\n{worse} of {len(after)} below"
            where: Style = {"transform": panel.transAxes, "fontsize": 6, "va": "top", "ha": "left"}
            panel.text(0.02, 0.98, about, gid="about", **where)
            panel.set_ylim(top=1.22 * panel.get_ylim()[1])
            panel.set_title(name)
            metrics.append(metric)
        draw.label_outer(drawn, "", "number of heads")
        for panel, metric in zip(drawn, metrics, strict=True):
            panel.set_xlabel(
                f"{metric} without one head" if len(drawn) < 3 else f"{metric} without it"
            )
        return draw.finish(figure, path)


def order_over_training(
    settling: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """How soon the order of heads is the one that training ends with; a panel a training.

    After Michel et al. 2019, section 6; `over_training.settling` makes the frame.

    >>> frame = pd.DataFrame({"step": [10, 100], "stack": "all", "value": [0.4, 1.0],
    ...                       "low": [0.2, 1.0], "high": [0.6, 1.0]})
    >>> order_over_training(frame).axes[0].lines[0].get_ydata().tolist()
    [0.4, 1.0]
    """
    columns = ("step", "stack", "value", "low", "high")
    frames = draw.frames_of(settling, "settling", columns, "settling", known="value")
    with draw.paper():
        figure, drawn = draw.wrapped(len(frames), width=width, height=2.3, sharey=True)
        for panel, (name, frame) in zip(drawn, frames.items(), strict=True):
            for stack, rows in frame.groupby("stack", sort=False):
                _draw_order(panel, str(stack), rows)
            panel.axhline(0, color=draw.INK, linewidth=draw.HAIRLINE)
            panel.set_xscale("log")
            panel.set_title(name)
        draw.label_outer(drawn, "training step", "rank agreement with the end")
        draw.key_below(figure, *drawn)
        return draw.finish(figure, path)


def _draw_order(panel: Axes, stack: str, rows: pd.DataFrame) -> None:
    colour, marker = draw.STACK_COLOURS[stack]
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
    values = np.unique(after.round(6))
    step = np.diff(values).min() if len(values) > 1 else 0.0
    count = round((values[-1] - values[0]) / step) + 1 if step else 0
    if not 0 < count <= bins:
        return [float(edge) for edge in np.histogram_bin_edges(after, bins)]
    return [float(values[0] + step * (place - 0.5)) for place in range(count + 1)]


def _after(table: HeadTable, column: str) -> tuple[np.ndarray, float, str]:
    """The scores without each head, the whole model's score, and the metric."""
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


# --- Each head as a point between two numbers ---------------------------------------------------
# Michel et al. 2019, figure 2; Voita et al. 2019, section 4.


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
    tables = draw.table_of(first), draw.table_of(second)
    for table in tables:
        draw.need_columns(table, [column])
    if tables[0].heads != tables[1].heads:
        raise UsageError("The two tables have different heads; compare one model on two data sets.")
    x, y = (table.numbers(column) for table in tables)
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=2.8)
        panel = axes[0, 0]
        _points(panel, tables[0], x, y)
        panel.set_title(f"Pearson's r = {_agreement(x, y, 'pearson')}")
        panel.set_xlabel(f"{tables[0].column(column).title}, {names[0]}")
        panel.set_ylabel(f"{tables[1].column(column).title}, {names[1]}")
        if len(tables[0].stacks) > 1:
            draw.key_below(figure, panel)
        return draw.finish(figure, path)


def two_scores(
    given: Many,
    first: str = "confidence",
    second: str = "relevance",
    *,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Each head's second score against its first, with Spearman's correlation by stack; several.

    After Voita et al. 2019, section 4: whether heads that are confident are those that matter.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"confidence": [1, 2, 3, 4.0], "relevance": [2, 1, 3, 4.0]})
    >>> two_scores(table).axes[0].get_legend_handles_labels()[1]
    ['enc 0.80 [...]']
    """
    tables = draw.tables_of(given, [first, second])
    with draw.paper():
        figure, drawn = draw.wrapped(len(tables), most=2, width=width, height=2.8)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            x, y = table.numbers(first), table.numbers(second)
            _points(panel, table, x, y, correlated=True)
            panel.set_title(name)
            panel.set_xlabel(table.column(first).title)
            panel.set_ylabel(table.column(second).title)
            panel.legend(title="Spearman's correlation", title_fontsize=7, alignment="left")
        return draw.finish(figure, path)


def _points(
    panel: Axes, table: HeadTable, x: np.ndarray, y: np.ndarray, correlated: bool = False
) -> None:
    """The heads of each stack in its colour; its label may say how far the numbers agree."""
    known = np.isfinite(x) & np.isfinite(y)
    stacks = np.array([head.stack for head in table.heads])
    for stack in table.stacks:
        own = known & (stacks == stack)
        colour, marker = draw.STACK_COLOURS[stack]
        label = f"{stack} {_agreement(x[own], y[own], 'spearman')}" if correlated else stack
        style: Style = {"s": 12, "alpha": 0.7, "linewidths": 0, "gid": f"stack {stack}"}
        panel.scatter(x[own], y[own], color=colour, marker=marker, label=label, **style)


def _agreement(x: np.ndarray, y: np.ndarray, kind: Kind) -> str:
    """A correlation with its interval, in two figures; a dash where heads are too few or alike."""
    known = np.isfinite(x) & np.isfinite(y)
    found = stats.rank_agreement(x[known], y[known], kind)
    if np.isnan(found.value):
        return "–"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


# --- What pruning leaves of the score at stages of training -------------------------------------


def pruning_over_training(
    given: Mapping[Any, Given | pd.DataFrame],
    order: str | None = None,
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """What pruning leaves of the score, in percent of the unpruned model of the same epoch.

    Michel et al. 2019, figure 5. Keys are epochs or steps, values their runs or curves.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 15], "low": [29.0, 14],
    ...     "high": [31.0, 16]})
    >>> pruning_over_training({1: frame, 2: frame}).axes[0].lines[1].get_xydata().tolist()
    [[0.0, 100.0], [50.0, 50.0]]
    """
    if not isinstance(given, Mapping) or not given:
        raise UsageError("Give a mapping of epochs to curves or runs, one entry a checkpoint.")
    curves = {str(epoch): curve_of(one, metric) for epoch, one in given.items()}
    with draw.paper():
        from matplotlib import colormaps

        figure, axes = draw.panels(1, 1, width=width, height=2.4)
        for place, (epoch, rows) in enumerate(curves.items()):
            chosen = of_order(rows[rows["scope"] == "all"], order or str(rows["order"].iloc[0]))
            shade = colormaps["viridis"](0.9 * place / max(1, len(curves) - 1))
            x, y = percent_left(chosen)
            whole = f"after {epoch} ({chosen.sort_values('step')['value'].iloc[0]:.3g} unpruned)"
            style: Style = {"marker": "o", "gid": f"epoch {epoch}"}
            axes[0, 0].plot(x, y, color=shade, label=whole, **style)
        axes[0, 0].set_xlabel("heads removed, percent")
        axes[0, 0].set_ylabel(f"percent of the unpruned {rows['metric'].iloc[0]}")
        draw.key_below(figure, axes[0, 0])
        return draw.finish(figure, path)


# --- What a task gains when heads are disabled, one grid a task ---------------------------------


def disabling(
    given: Many,
    column: str = "ablation",
    *,
    layers: str | None = "ablation_layer",
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """What the task gains when a head is disabled, a grid a task; at the right, whole layers.

    Kovaleva et al. 2019, figures 8 and 9; with ``--mode uniform`` disabled as the paper does.
    Blue is a gain and red a loss. Layers are drawn where the table has the column `layers`, in
    the colours of the heads.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"ablation": [0.5, -0.25]})
    >>> disabling(table).axes[0].collections[0].get_array().tolist()
    [[-0.5, 0.25]]
    """
    tables = draw.tables_of(given, [column])
    with draw.paper():
        figure, drawn = draw.wrapped(len(tables), width=width, height=1.8)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            gains = -draw.stack_grid(table.frame[column], stack) + 0.0
            wide = gains
            if layers is not None and layers in table.frame:
                whole = -draw.stack_grid(table.frame[layers], stack) + 0.0
                wide = np.column_stack([gains, _first(whole)])
            mesh = draw_cells(panel, wide, scale_of([gains], diverging=True))
            if wide is not gains:
                _mark_layers(panel, gains.shape[1])
            panel.set_title(name or stack)
            unit = table.column(column).unit or "score"
            colour_bar(figure, mesh, panel, f"{unit} {'saved' if unit == 'loss' else 'gained'}")
        draw.label_outer(drawn, "head", "layer")
        return draw.finish(figure, path)


def _first(grid: np.ndarray) -> np.ndarray:
    """One value a layer, where every head of the layer has it; NaN in the gap before it."""
    values = [next((v for v in row if np.isfinite(v)), np.nan) for row in grid]
    return np.array(values)


def _mark_layers(panel: Axes, heads: int) -> None:
    """A line before the column of whole layers, and its name."""
    panel.axvline(heads, color="white", linewidth=4)
    ticks = [*panel.get_xticks()[: heads or 1], heads + 0.5]
    labels = [str(int(tick)) for tick in ticks[:-1]] + ["all"]
    panel.set_xticks(ticks, labels)
