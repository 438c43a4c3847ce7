"""Which patterns maps have, by layer and task.

Kovaleva et al. 2019, figure 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.errors import UsageError
from headcount.plot.reading import Many, by_name, grid_of, need_columns, stacks_of, table_of
from headcount.plot.style import SERIES, Style, Width, finish, key_below, layer_axis, panels, paper
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["patterns"]

_COLOURS = {
    "vertical": SERIES[0][0],
    "diagonal": SERIES[4][0],
    "vertical_diagonal": SERIES[3][0],
    "block": SERIES[2][0],
    "heterogeneous": "#c9ccd2",
}


def patterns(
    given: Many,
    *,
    by: str = "layer",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Shares of the five patterns: a bar a layer and a panel a source, or one bar a source.

    Kovaleva et al. 2019, figure 2, which has one bar a task (``by="task"``).

    >>> from headcount import Head, HeadTable
    >>> shares = {f"pattern_{name}": [float(name == "block")] for name in _COLOURS}
    >>> figure = patterns(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> sum(float(bar.get_height()) for bar in figure.axes[0].patches)
    1.0
    """
    if by not in ("layer", "task"):
        raise UsageError(f"by is '{by}'; bars are by 'layer' or by 'task'.")
    columns = [f"pattern_{name}" for name in _COLOURS]
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    for table in tables.values():
        need_columns(table, columns)
    shown = [(n, t, stack) for n, t in tables.items() for stack in stacks_of(t, columns)]
    with paper():
        if by == "task":
            figure, axes = panels(1, 1, width=width, height=2.3)
            bars = [_means(table, stack).mean(axis=1) for _, table, stack in shown]
            _stack(axes[0, 0], np.array(bars).T)
            names = [f"{name} {stack}".strip() for name, _, stack in shown]
            axes[0, 0].set_xticks(range(len(names)), names)
        else:
            wide = min(4, len(shown))
            lines = -(-len(shown) // wide)
            figure, axes = panels(lines, wide, width=width, height=1.8, sharey=True)
            for panel in axes.flat[len(shown) :]:
                panel.set_axis_off()
            for panel, (name, table, stack) in zip(axes.flat, shown, strict=False):
                means = _means(table, stack)
                _stack(panel, means)
                layer_axis(panel, means.shape[1])
                panel.set_title(f"{name} {stack}".strip())
        for row in axes:
            row[0].set_ylabel("share of maps")
        key_below(figure, axes[0, 0], columns=5)
        return finish(figure, path)


def _means(table: HeadTable, stack: str) -> np.ndarray:
    """Mean share `[pattern, layer]` over the heads of a layer; NaN where nothing was told."""
    grids = [grid_of(table.frame[f"pattern_{name}"], stack) for name in _COLOURS]
    known = np.isfinite(grids[0])
    count = known.sum(axis=1)
    return np.array(
        [np.where(count, np.nansum(grid, axis=1) / np.maximum(count, 1), np.nan) for grid in grids]
    )


def _stack(panel: Axes, means: np.ndarray) -> None:
    """Bars upon bars; a layer that was not measured is a hatched bar."""
    below = np.zeros(means.shape[1])
    for (name, colour), values in zip(_COLOURS.items(), means, strict=True):
        label = name.replace("_", " + ")
        style: Style = {"color": colour, "label": label, "bottom": below.copy(), "gid": name}
        panel.bar(range(len(values)), values, 0.86, **style)
        below += np.nan_to_num(values)
    missing = np.flatnonzero(np.isnan(means[0]))
    if len(missing):
        gone: Style = {"fill": False, "hatch": "////", "linewidth": 0, "gid": "missing"}
        panel.bar(missing, np.ones(len(missing)), 0.86, **gone)
    panel.set_ylim(0, 1)
