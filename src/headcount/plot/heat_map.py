"""One stack as a grid of layers by heads; what was not measured is hatched, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.plot.style import DIVERGING, INK, SEQUENTIAL, Style, role_colour, role_marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

__all__ = ["colour_bar", "draw_cells", "draw_roles", "role_key", "scale_of"]

Scale = tuple[float, float, str]


def scale_of(
    grids: list[np.ndarray], *, diverging: bool = False, top: float | None = None
) -> Scale:
    """The smallest and the largest colour, and the colours, of grids that share a scale.

    It begins at 0 unless values part there, or unless `top` says where it ends.

    >>> scale_of([np.array([[0.2, np.nan], [0.5, 0.1]])])[:2]
    (0.0, 0.5)
    """
    known = np.concatenate([grid[np.isfinite(grid)] for grid in grids])
    if not len(known):
        return 0.0, 1.0, SEQUENTIAL
    low, high = float(known.min()), float(known.max())
    if diverging:
        reach = max(abs(low), abs(high)) or 1.0
        return -reach, reach, DIVERGING
    if top is not None:
        return (low if low < top else top - 1.0), top, SEQUENTIAL
    low = min(0.0, low)
    return low, high if high > low else low + 1.0, SEQUENTIAL


def draw_cells(panel: Axes, grid: np.ndarray, scale: Scale, *, ticks: bool = True) -> QuadMesh:
    """Draw a grid; the first layer is on top."""
    from matplotlib.patches import Rectangle

    low, high, colours = scale
    style: Style = {"edgecolors": "white", "linewidth": 0.5, "rasterized": False}
    mesh = panel.pcolormesh(np.ma.masked_invalid(grid), cmap=colours, vmin=low, vmax=high, **style)
    for row, column in np.argwhere(~np.isfinite(grid)):
        cell = Rectangle((column, row), 1, 1, hatch="////", fill=False, linewidth=0, gid="missing")
        panel.add_patch(cell)
    panel.invert_yaxis()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    if ticks:
        for axis, size in ((panel.xaxis, grid.shape[1]), (panel.yaxis, grid.shape[0])):
            places = np.arange(0, size, max(1, -(-size // 12)))
            axis.set_ticks(places + 0.5, [str(place) for place in places])
    return mesh


def draw_roles(panel: Axes, roles: Mapping[tuple[str, int, int], list[str]], stack: str) -> None:
    """Mark up to three roles in the cells of their heads."""
    for (of, layer, head), held in roles.items():
        shown = held[:3] if of == stack else []
        for place, role in enumerate(shown):
            x = head + 0.5 + 0.3 * (place - (len(shown) - 1) / 2)
            panel.plot(x, layer + 0.5, gid=f"role {role}", **_mark(role))


def role_key(figure: Figure, roles: list[str]) -> None:
    """The legend of roles below a figure."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], label=role, **_mark(role)) for role in roles]
    if marks:
        figure.legend(handles=marks, loc="outside lower center", ncols=min(len(marks), 6))


def _mark(role: str) -> dict[str, Any]:
    style: Style = {
        "marker": role_marker(role),
        "color": role_colour(role),
        "markeredgecolor": "white",
    }
    return {**style, "linestyle": "none", "markersize": 5, "markeredgewidth": 0.5}


def colour_bar(figure: Figure, mesh: QuadMesh, where: Any, label: str) -> None:
    """A thin bar that says what colours mean, with points where some values lie beyond it."""
    values: np.ndarray = np.ma.compressed(np.ma.asarray(mesh.get_array()))
    beyond = bool((np.clip(values, *mesh.get_clim()) != values).any())
    style: Style = {"shrink": 0.9, "aspect": 25, "pad": 0.01, "extend": "both" if beyond else None}
    bar = figure.colorbar(mesh, ax=where, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6, length=2)
    bar.set_label(label, fontsize=7, color=INK)
