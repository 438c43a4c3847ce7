"""A point a head and a line through the means of layers, for one figure of any columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headcount.plot.layout import layer_axis
from headcount.plot.reading import grid_of
from headcount.plot.style import SERIES, Style
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_by_layer"]


def draw_by_layer(panel: Axes, table: HeadTable, stack: str, columns: Mapping[str, str]) -> None:
    """Draw columns (name to label) of one stack; a head without a value has no point."""
    for place, (name, label) in enumerate(columns.items()):
        grid = grid_of(table.frame[name], stack)
        if not np.isfinite(grid).any():
            continue
        colour, marker = SERIES[place]
        layers = np.arange(len(grid))
        shift = 0.14 * (place - (len(columns) - 1) / 2)
        x, y = np.repeat(layers + shift, grid.shape[1]), grid.ravel()
        known = np.isfinite(y)
        style: Style = {"s": 9, "alpha": 0.5, "linewidths": 0, "gid": f"heads {name}"}
        panel.scatter(x[known], y[known], color=colour, marker=marker, **style)
        there = np.isfinite(grid).any(axis=1)
        means = [np.nanmean(row) for row in grid[there]]
        panel.plot(layers[there], means, color=colour, label=label, gid=f"means {name}")
    layer_axis(panel, int(table.frame.loc[stack].index.get_level_values("layer").max()) + 1)
