"""Quality over the heads that learned gates leave.

Voita et al. 2019, figure 7.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.plot.curve_lines import (
    curve_of,
    draw_whole,
    is_healed,
    metric_in_words,
    of_order,
)
from headcount.plot.layout import key_below, panels
from headcount.plot.reading import Frames, frames_by_name
from headcount.plot.style import SERIES, Style, Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["gated_quality"]


def gated_quality(
    given: Frames,
    order: str = "gates",
    metric: str | None = None,
    *,
    unit: str = "heads",
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Quality over heads left where gates learned which heads go; few heads have much room.

    Voita et al. 2019, figure 7. A line a source; where some points were healed, those that were
    not are dotted.

    >>> frame = pd.DataFrame({"order": "gates", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 2], "metric": "bleu", "value": [30.0, 29], "low": [29.0, 28],
    ...     "high": [31.0, 30]})
    >>> gated_quality(frame).axes[0].get_xscale()
    'log'
    """
    sources = {
        n: of_order(curve_of(one, metric), order) for n, one in frames_by_name(given).items()
    }
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        panel = axes[0, 0]
        for (name, rows), (colour, marker) in zip(sources.items(), SERIES, strict=False):
            _draw(panel, rows, name, {"color": colour, "marker": marker})
            if len(sources) == 1:
                draw_whole(panel, rows)
        panel.set_xscale("log", base=2)
        counts = sorted({int(n) for rows in sources.values() for n in rows["heads_left"]})
        ticks = _apart(counts)
        panel.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_xlabel(f"{unit} left")
        panel.set_ylabel(metric_in_words(rows))
        key_below(figure, panel)
        return finish(figure, path)


def _draw(panel: Axes, rows: pd.DataFrame, name: str, style: Style) -> None:
    """A source's line with its intervals, and a dotted one for sets as they are before healing."""
    healed = is_healed(rows)
    bare = rows[~healed & (rows["step"] > 0)] if healed.any() else rows[:0]
    own = rows[healed | (rows["step"] == 0)] if healed.any() else rows
    own = own.sort_values("heads_left")
    value, low, high = (own[part].to_numpy(float) for part in ("value", "low", "high"))
    ends = np.clip(np.array([value - low, high - value]), 0, None)
    label = f"{name}, healed".lstrip(", ") if len(bare) else name
    shown: Style = {"capsize": 2, "elinewidth": 0.8, "label": label or "_", "gid": f"gates {name}"}
    panel.errorbar(own["heads_left"].to_numpy(), value, ends, **style, **shown)
    if len(bare):
        bare = bare.sort_values("heads_left")
        x, y = bare["heads_left"].to_numpy(), bare["value"].to_numpy(float)
        label = f"{name}, not healed".lstrip(", ")
        dotted: Style = {"linestyle": ":", "fillstyle": "none", "gid": f"bare {name}"}
        panel.plot(x, y, **style, **dotted, label=label)


def _apart(counts: list[int]) -> list[int]:
    """Of rising numbers those with room between them on a logarithmic axis, the last included."""
    kept: list[int] = []
    for count in reversed(counts):
        if not kept or count * 1.2 <= kept[-1]:
            kept.append(count)
    return kept[::-1]
