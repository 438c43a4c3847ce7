"""What the first token's row of the last layer attends to.

Kovaleva et al. 2019, figure 7.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.plot.heat_map import colour_bar, draw_cells, scale_of
from headcount.plot.layout import panels
from headcount.plot.needs import need_rows
from headcount.plot.reading import Frames, frame_of, frames_by_name
from headcount.plot.style import INK, Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["first_row"]

_FEATURES = ("noun", "verb", "pronoun", "subject", "object", "negation", "separator", "first")


def first_row(
    given: Frames,
    *,
    stack: str = "enc",
    layer: int | None = None,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Attention of [CLS] in the last layer to kinds of tokens, mean over heads, a row a task.

    Kovaleva et al. 2019, figure 7. Each kind counts texts that have such a token.

    >>> frame = pd.DataFrame({"stack": "enc", "layer": 0, "head": [0, 1], "feature": "noun",
    ...                       "split": "all", "origin": "first", "value": [0.25, 0.75]})
    >>> float(first_row(frame).axes[0].collections[0].get_array()[0, 0])
    0.5
    """
    named = frames_by_name(given)
    grid = np.array([_means(frame_of(one, "features"), stack, layer) for one in named.values()])
    with paper():
        figure, axes = panels(1, 1, width=width, height=0.6 + 0.3 * len(grid))
        mesh = draw_cells(axes[0, 0], grid, scale_of([grid]), ticks=False)
        for (row, column), value in np.ndenumerate(grid):
            said = "–" if np.isnan(value) else f"{value:.2f}"
            ink = "white" if value > 0.6 * np.nanmax(grid) else INK
            place = {"ha": "center", "va": "center", "fontsize": 6.5}
            axes[0, 0].text(column + 0.5, row + 0.5, said, color=ink, **place)
        axes[0, 0].set_xticks(np.arange(len(_FEATURES)) + 0.5, _FEATURES)
        axes[0, 0].set_yticks(np.arange(len(grid)) + 0.5, list(named))
        colour_bar(figure, mesh, axes[0, 0], "attention")
        return finish(figure, path)


def _means(frame: pd.DataFrame, stack: str, layer: int | None) -> list[float]:
    """The mean over the heads of one layer, for each kind of token; NaN where there was none."""
    need_rows(
        frame, ("stack", "layer", "feature", "split", "origin", "value"), "features", known="value"
    )
    own = frame[(frame["stack"] == stack) & (frame["origin"] == "first")]
    if not len(own):
        raise UsageError(f"The run has no row of the first token for the stack '{stack}'.")
    split = "all" if (own["split"] == "all").any() else own["split"].iloc[0]
    last = int(own["layer"].max()) if layer is None else layer
    chosen = own[(own["split"] == split) & (own["layer"] == last)]
    means = chosen.groupby("feature")["value"].mean()
    return [float(means.get(name, np.nan)) for name in _FEATURES]
