"""Which patterns maps have, by layer and task.

Kovaleva et al. 2019, figure 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.plot.layout import key_below, label_outer, layer_axis, wrapped
from headcount.plot.needs import need_columns, need_rows
from headcount.plot.reading import Frames, frames_by_name, grid_of, stacks_of, table_of, titled
from headcount.plot.style import SERIES, Style, Width, finish, paper
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
_COLUMNS = [f"pattern_{name}" for name in _COLOURS]


def patterns(
    given: Frames,
    *,
    by: str = "layer",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Shares of the five patterns: a bar a layer and a panel a source, or one bar a source.

    Kovaleva et al. 2019, figure 2, which has one bar a task (``by="task"``). A frame with stack,
    layer and the columns pattern_... is taken as shares of layers.

    >>> from headcount import Head, HeadTable
    >>> shares = {f"pattern_{name}": [float(name == "block")] for name in _COLOURS}
    >>> figure = patterns(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> sum(float(bar.get_height()) for bar in figure.axes[0].patches)
    1.0
    """
    if by not in ("layer", "task"):
        raise UsageError(f"by is '{by}'; bars are by 'layer' or by 'task'.")
    shown = _shares(given)
    with paper():
        if by == "task":
            figure, drawn = wrapped(1, width=width, height=2.3)
            _stack(drawn[0], np.array([_over_layers(means) for means in shown.values()]).T)
            drawn[0].set_xticks(range(len(shown)), list(shown))
        else:
            figure, drawn = wrapped(len(shown), most=4, width=width, height=1.8, sharey=True)
            for panel, (name, means) in zip(drawn, shown.items(), strict=True):
                _stack(panel, means)
                layer_axis(panel, means.shape[1])
                panel.set_title(name)
        label_outer(drawn, "layer" if by == "layer" else "", "share of maps")
        key_below(figure, drawn[0], columns=5)
        return finish(figure, path)


def _shares(given: Frames) -> dict[str, np.ndarray]:
    """Shares `[pattern, layer]` of each stack of each source, under the name of its panel."""
    found: dict[str, np.ndarray] = {}
    for name, one in frames_by_name(given).items():
        if isinstance(one, pd.DataFrame):
            need_rows(one, ("stack", "layer", *_COLUMNS), "shares of patterns")
            told = one.set_index(["stack", "layer"])[_COLUMNS]
            layers = {stack: told.loc[stack].sort_index().to_numpy(float).T for stack in _in(told)}
        else:
            table = table_of(one)
            need_columns(table, _COLUMNS)
            layers = {stack: _means(table, stack) for stack in stacks_of(table, _COLUMNS)}
        found |= {titled(name, stack, layers): means for stack, means in layers.items()}
    return found


def _over_layers(means: np.ndarray) -> np.ndarray:
    """The mean over the layers that are known; NaN where none is."""
    known = means[:, np.isfinite(means[0])]
    return known.mean(axis=1) if known.size else np.full(len(means), np.nan)


def _in(told: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(told.index.get_level_values("stack")))


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
