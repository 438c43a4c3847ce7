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

from headcount.atomic import write_bytes
from headcount.errors import HeadcountError, UsageError
from headcount.report.look import LOOKS

if TYPE_CHECKING:
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
    "paper",
    "role_colour",
    "role_marker",
]

#: Keywords of a drawing function of matplotlib.
Style = dict[str, Any]
#: One column of a two-column paper, or the whole page.
Width = Literal["column", "page"]

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
