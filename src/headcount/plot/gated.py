"""Quality over the heads that learned gates leave.

Voita et al. 2019, figure 7.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.plot.curve_lines import curve_of, draw_whole, metric_in_words, of_order
from headcount.plot.reading import Given
from headcount.plot.style import INK, Style, Width, finish, panels, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["gated_quality"]


def gated_quality(
    given: Given | pd.DataFrame,
    order: str = "gates",
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Quality over heads left where gates learned which heads go; few heads have much room.

    Voita et al. 2019, figure 7.

    >>> frame = pd.DataFrame({"order": "gates", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 2], "metric": "bleu", "value": [30.0, 29], "low": [29.0, 28],
    ...     "high": [31.0, 30]})
    >>> gated_quality(frame).axes[0].get_xscale()
    'log'
    """
    rows = of_order(curve_of(given, metric), order)
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        panel = axes[0, 0]
        own = rows.sort_values("heads_left")
        value, low, high = (own[name].to_numpy(float) for name in ("value", "low", "high"))
        ends = np.clip(np.array([value - low, high - value]), 0, None)
        style: Style = {"marker": "o", "capsize": 2, "color": INK, "elinewidth": 0.8}
        panel.errorbar(own["heads_left"].to_numpy(), value, ends, **style)
        draw_whole(panel, rows)
        panel.set_xscale("log", base=2)
        ticks = _apart(own["heads_left"].drop_duplicates().tolist())
        panel.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_xlabel("heads left")
        panel.set_ylabel(metric_in_words(rows))
        return finish(figure, path)


def _apart(counts: list[int]) -> list[int]:
    """Of rising numbers those with room between them on a logarithmic axis, the last included."""
    kept: list[int] = []
    for count in reversed(counts):
        if not kept or count * 1.2 <= kept[-1]:
            kept.append(count)
    return kept[::-1]
