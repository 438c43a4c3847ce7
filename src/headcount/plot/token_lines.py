"""What heads look at in one text: a line from each token to those it attends to.

Clark et al. 2019, figures 1 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.errors import RunError, UsageError
from headcount.exhibits import Exhibit, read_exhibits
from headcount.heads import Head, parse_heads
from headcount.plot.layout import wrapped
from headcount.plot.reading import table_of
from headcount.plot.style import GREY, SERIES, Style, Width, finish, paper
from headcount.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["attention_lines"]


def attention_lines(
    given: Exhibit | Run | str | Path,
    heads: str | Iterable[str | Head],
    exhibit: int = 0,
    *,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Tokens that ask at the left, tokens that answer at the right, a panel a head.

    Clark et al. 2019, figures 1 and 5. A line is as dark as the weight; special tokens are grey.
    `exhibit` is the number of a text of the run, from 0.

    >>> from headcount.exhibits import Text
    >>> text = Text(["a", "b"], [False, False])
    >>> maps = {("enc", 0): np.array([[[0.9, 0.1], [0.2, 0.8]]], dtype=np.float32)}
    >>> one = Exhibit("one", "a b", {"src": text}, {"enc": ("src", "src")}, maps)
    >>> [round(line.get_alpha(), 1) for line in attention_lines(one, "enc.0.0").axes[0].lines]
    [0.9, 0.1, 0.2, 0.8]
    """
    chosen = parse_heads(heads)
    if not chosen:
        raise UsageError("No head is named; give some, such as 'enc.2.8,enc.3.1'.")
    shown = given if isinstance(given, Exhibit) else _exhibit(given, exhibit)
    known = [] if isinstance(given, Exhibit) else table_of(given).heads
    maps = [_map(shown, head, known) for head in chosen]
    tall = max(max(weights.shape) for weights in maps)
    with paper():
        figure, drawn = wrapped(len(chosen), most=4, width=width, height=0.3 + 0.14 * tall)
        for panel, head, weights in zip(drawn, chosen, maps, strict=True):
            _lines(panel, weights)
            for x, side in zip((0, 1), shown.sides[head.stack], strict=True):
                _tokens(panel, x, shown, side)
            panel.set_title(str(head))
            panel.set(xlim=(-0.9, 1.9), ylim=(tall - 0.5, -0.5))
            panel.set_axis_off()
        return finish(figure, path)


def _exhibit(given: Run | str | Path, number: int) -> Exhibit:
    """A text of the run with its maps."""
    found = read_exhibits(given)
    if not found:
        where = given.path if isinstance(given, Run) else given
        raise RunError(f"{where} has no exhibits; `headcount report MODEL --run RUN` makes them.")
    if not 0 <= number < len(found):
        raise UsageError(f"There is no exhibit {number}; the run has {len(found)}, from 0.")
    return found[number]


def _map(exhibit: Exhibit, head: Head, known: list[Head]) -> np.ndarray:
    """The weights `[query, key]` of a head; maps of heads that were removed are not kept."""
    there = exhibit.maps.get((head.stack, head.layer), np.empty((0, 0, 0)))
    own = [one.index for one in known if one[:2] == head[:2]]
    order = own if len(own) == len(there) else list(range(len(there)))
    if head.index not in order:
        raise UsageError(f"Exhibit {exhibit.id} has no map of {head}; name a head of its model.")
    weights: np.ndarray = np.asarray(there[order.index(head.index)], dtype=float)
    return weights


def _lines(panel: Axes, weights: np.ndarray) -> None:
    """A line for each pair of tokens; what nobody would see is left out."""
    for (asking, answering), weight in np.ndenumerate(weights):
        if weight >= 0.01:
            style: Style = {"color": SERIES[0][0], "alpha": min(1.0, float(weight))}
            panel.plot([0.02, 0.98], [asking, answering], linewidth=1, **style)


def _tokens(panel: Axes, x: int, exhibit: Exhibit, side: str) -> None:
    """The tokens of one text, one below the other."""
    text = exhibit.texts[side]
    for place, (token, special) in enumerate(zip(text.tokens, text.special, strict=True)):
        style: Style = {"ha": "left" if x else "right", "va": "center", "fontsize": 6.5}
        style |= {"parse_math": False} | ({"color": GREY} if special else {})
        panel.text(x, place, token, **style)
