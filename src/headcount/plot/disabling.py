"""What a task gains when heads are disabled, one grid a task.

Kovaleva et al. 2019, figures 8 and 9.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.plot.heat_map import colour_bar, draw_cells, scale_of
from headcount.plot.layout import label_outer, wrapped
from headcount.plot.needs import need_columns
from headcount.plot.reading import Many, by_name, stack_grid, table_of
from headcount.plot.style import Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["disabling"]


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
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    for table in tables.values():
        need_columns(table, [column])
    with paper():
        figure, drawn = wrapped(len(tables), width=width, height=1.8)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            gains = -stack_grid(table.frame[column], stack) + 0.0
            wide = gains
            if layers is not None and layers in table.frame:
                whole = -stack_grid(table.frame[layers], stack) + 0.0
                wide = np.column_stack([gains, _first(whole)])
            mesh = draw_cells(panel, wide, scale_of([gains], diverging=True))
            if wide is not gains:
                _mark_layers(panel, gains.shape[1])
            panel.set_title(name or stack)
            unit = table.column(column).unit or "score"
            colour_bar(figure, mesh, panel, f"{unit} {'saved' if unit == 'loss' else 'gained'}")
        label_outer(drawn, "head", "layer")
        return finish(figure, path)


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
