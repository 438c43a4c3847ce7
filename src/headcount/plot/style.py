"""How figures look in print: white paper, grey ink, hairlines, colours that all eyes tell apart.

matplotlib is loaded only when something is drawn, and pyplot never: no window, no global state.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headcount.atomic import write_bytes
from headcount.errors import HeadcountError, UsageError
from headcount.report.look import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DIVERGING",
    "GREY",
    "HAIRLINE",
    "INK",
    "SEQUENTIAL",
    "SERIES",
    "STACK_COLOURS",
    "Style",
    "Width",
    "can_draw",
    "finish",
    "key_below",
    "label_outer",
    "layer_axis",
    "panels",
    "paper",
    "role_colour",
    "role_marker",
    "wrapped",
]

#: Keywords of a drawing function of matplotlib.
Style = dict[str, Any]
#: One column of a two-column paper, or the whole page.
Width = Literal["column", "page"]
_INCHES = {"column": 3.3, "page": 6.9}

INK, GREY, HAIRLINE = "#333333", "#8a8d94", 0.6
#: Okabe and Ito's colours, which stay apart for all kinds of sight; each with its marker.
SERIES = (
    ("#0072b2", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
    ("#e69f00", "v"),
    ("#56b4e9", "P"),
    (INK, "X"),
)
STACK_COLOURS = {"enc": SERIES[0], "dec": SERIES[1], "cross": SERIES[2], "all": (INK, "X")}
SEQUENTIAL, DIVERGING = "YlGnBu", "RdBu"

#: All have an inside, so that a white edge keeps them apart from any ground.
_MARKERS: tuple[Any, ...] = (
    *("<", "^", "*", "D", "s", "P", "p", "H", "o", "v", "h", ">", "8", "d"),
    *((4, 1, 0), (6, 1, 0), "X", "."),
)
_KINDS = {".svg": "Date", ".pdf": "CreationDate", ".png": None}
_RC: Any = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": HAIRLINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": HAIRLINE,
    "ytick.major.width": HAIRLINE,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "hatch.linewidth": HAIRLINE,
    "hatch.color": "#b9bcc4",
    "figure.facecolor": "white",
    "savefig.dpi": 300,
    "svg.hashsalt": "headcount",
    "pdf.fonttype": 42,
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def paper() -> Iterator[None]:
    """Draw inside this: the house's sizes and lines, whatever the user's own settings are."""
    try:
        from matplotlib import rc_context, rcdefaults
    except ImportError as error:
        raise HeadcountError(
            "Figures need matplotlib, which is not installed; `pip install 'headcount[plot]'`."
        ) from error
    with rc_context():
        rcdefaults()
        with rc_context(_RC):
            yield


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


def finish(figure: Figure, path: str | Path | None) -> Figure:
    """Save the figure where a path is given: the same numbers give the same bytes."""
    if path is not None:
        place = Path(path)
        if place.suffix not in _KINDS:
            raise UsageError(
                f"'{place.name}' cannot be a figure's name; it ends with .svg, .pdf or .png."
            )
        date, held = _KINDS[place.suffix], io.BytesIO()
        about: dict[str, Any] = {date: None} if date else {}
        figure.savefig(held, format=place.suffix[1:], metadata=about)
        write_bytes(place, held.getvalue())
    return figure


def key_below(figure: Figure, *drawn: Axes, columns: int = 4) -> None:
    """The legend of what panels hold below the whole figure, where it hides no point."""
    found: dict[str, Any] = {}
    for panel in drawn:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        narrow = 3 if max(map(len, found)) <= 10 else 2
        most = columns if figure.get_figwidth() > 4 else narrow
        style: Style = {"loc": "outside lower center", "ncols": min(len(found), most)}
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


def role_colour(role: str) -> str:
    """The colour that the role has on the page of a report.

    >>> role_colour("sink") == LOOKS["sink"].light, role_colour("mine") == LOOKS["other"].light
    (True, True)
    """
    return LOOKS.get(role, LOOKS["other"]).light


def role_marker(role: str) -> Any:
    """A marker for the role, so that it is told without any colour."""
    names = list(LOOKS)
    return _MARKERS[names.index(role if role in LOOKS else "other")]
