"""The pruning curve as a picture: quality against the heads that are left."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["can_draw", "draw_curve"]

INK = "#333333"
#: The order that decides, those beside it, and what chance does.
COLOURS = ("#12419b", "#a0572a", "#03875a", "#7a3f98", "#b8860b")
CHANCE = "#aaaaaa"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_curve(frame: pd.DataFrame, path: Path, *, chosen: int | None = None) -> None:
    """Draw every order of a curve into an SVG; `chosen` is the number of heads that stay."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8))
    FigureCanvasSVG(figure)
    panel = figure.add_subplot()
    for label, colour, rows in _lines(frame[~frame.duplicated(["order", "scope", "step"])]):
        _draw_line(panel, rows, label, colour)
    healed = frame[frame["healed"].astype(bool)]
    if len(healed):
        panel.plot(healed["heads_left"], healed["value"], "*", color=INK, label="after training")
    first = frame.iloc[0]
    panel.axhline(first["value"], color=INK, linewidth=0.7, linestyle=":")
    if chosen is not None:
        panel.axvline(chosen, color=INK, linewidth=0.9)
        panel.annotate(f" {chosen} left", (chosen, 0.03), xycoords=("data", "axes fraction"))
    _finish(panel, first)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})


def _lines(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """A label and a colour for each order; all orders by chance look the same."""
    colours = iter(COLOURS * 4)
    told_chance = False
    for (order, scope), rows in frame.groupby(["order", "scope"], sort=False):
        if str(order).startswith("random"):
            yield ("" if told_chance else "random", CHANCE, rows)
            told_chance = True
        else:
            yield (str(order) if scope == "all" else f"{order}, {scope} only"), next(colours), rows


def _draw_line(panel: Axes, rows: pd.DataFrame, label: str, colour: str) -> None:
    x = rows["heads_left"].to_numpy()
    y, low, high = (rows[name].to_numpy(float) for name in ("value", "low", "high"))
    chance = colour == CHANCE
    panel.plot(x, y, "-" if chance else "o-", color=colour, markersize=3, linewidth=1.2)
    if label:
        panel.plot([], [], "-", color=colour, label=label)
    if not chance:
        panel.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)


def _finish(panel: Axes, first: Any) -> None:
    panel.invert_xaxis()
    panel.set_xlabel("heads left")
    panel.set_ylabel(f"{first['metric']} ({first['more']} where higher)")
    panel.set_title(
        f"{first['metric']} over {first['n']:,} examples ({first['part']}), 95% intervals",
        fontsize=9,
        loc="left",
        color=INK,
    )
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=8)
