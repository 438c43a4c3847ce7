"""Where panels stand in a figure, what their axes say, and the key below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.errors import UsageError
from headcount.plot.style import Style, Width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["key_below", "label_outer", "layer_axis", "panels", "wrapped"]

_INCHES = {"column": 3.3, "page": 6.9}


def panels(
    rows: int, columns: int, *, width: Width = "page", height: float = 1.9, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure with `[row, column]` panels; `height` is of one row in inches."""
    from matplotlib.figure import Figure

    if width not in _INCHES:
        raise UsageError(f"width is '{width}'; it is 'column' (3.3 in) or 'page' (6.9 in).")
    figure = Figure(figsize=(_INCHES[width], 0.3 + height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def wrapped(
    count: int, *, most: int = 3, width: Width = "page", height: float = 1.9, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most so many in a row; half as many in one column.

    >>> figure, drawn = wrapped(5, most=3)
    >>> len(drawn), _spot(drawn[3])
    (5, (1, 0))
    """
    wide = min(count, most if width == "page" else max(1, most // 2))
    figure, axes = panels(-(-count // wide), wide, width=width, height=height, **shared)
    for panel in axes.flat[count:]:
        panel.set_axis_off()
    return figure, list(axes.flat[:count])


def key_below(figure: Figure, *drawn: Axes, columns: int = 4) -> None:
    """The legend of what panels hold below the whole figure, where it hides no point."""
    found: dict[str, Any] = {}
    for panel in drawn:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        inches = 0.42 + 0.042 * max(map(len, found))  # a mark, and letters of 7 points
        most = max(1, min(columns, int(figure.get_figwidth() / inches)))
        style: Style = {"loc": "outside lower center", "ncols": min(len(found), most)}
        lines = -(-len(found) // most)
        figure.set_figheight(figure.get_figheight() + 0.15 * (lines - 1))  # panels stay as tall
        figure.legend(list(found.values()), list(found), **style)


def layer_axis(panel: Axes, layers: int, label: str = "layer") -> None:
    """Whole numbers below a panel, not too many of them."""
    step = max(1, -(-layers // 12))
    panel.set_xticks(range(0, layers, step))
    panel.set_xlabel(label)


def label_outer(drawn: list[Axes], below: str, beside: str) -> None:
    """Name the axes once: below where no panel is underneath, beside at the left."""
    spots = [_spot(panel) for panel in drawn]
    for panel, (row, column) in zip(drawn, spots, strict=True):
        panel.set_xlabel("" if (row + 1, column) in spots else below)
        panel.set_ylabel("" if column else beside)


def _spot(panel: Axes) -> tuple[int, int]:
    """Row and column of a panel."""
    where = panel.get_subplotspec()
    assert where is not None  # panels are made by `panels` alone
    return where.rowspan.start, where.colspan.start
