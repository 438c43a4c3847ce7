"""Quality over the heads that are left: by order, and by stack.

Michel et al. 2019, figures 3 and 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from headcount.errors import UsageError
from headcount.plot.curve_lines import (
    curve_of,
    draw_line,
    draw_orders,
    draw_whole,
    looks_of,
    metric_in_words,
    of_order,
)
from headcount.plot.layout import key_below, label_outer, panels, wrapped
from headcount.plot.reading import Frames, Given, frames_by_name
from headcount.plot.style import HAIRLINE, INK, STACK_COLOURS, Style, Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pruning_by_stack", "pruning_curves"]


def pruning_curves(
    given: Frames,
    metric: str | None = None,
    *,
    chosen: int | None = None,
    log: bool = False,
    unit: str = "heads",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Quality over heads left, a line an order with its 95% band, one panel a run.

    Michel et al. 2019, figure 3. `chosen` heads left are marked; `log` suits a perplexity; `unit`
    is the word for what is counted, where that is groups.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_curves(frame).axes[0].lines[0].get_xydata().tolist()
    [[8.0, 30.0], [4.0, 28.0]]
    """
    curves = {name: curve_of(one, metric) for name, one in frames_by_name(given).items()}
    looks = looks_of(str(order) for rows in curves.values() for order in rows["order"])
    with paper():
        figure, drawn = wrapped(len(curves), most=2, width=width, height=2.5)
        for panel, (name, rows) in zip(drawn, curves.items(), strict=True):
            whole = rows[rows["scope"] == "all"] if (rows["scope"] == "all").any() else rows
            draw_orders(panel, whole, looks)
            draw_whole(panel, whole)
            _axes(panel, rows, name, log)
            if chosen is not None:
                _mark(panel, chosen)
        label_outer(drawn, f"{unit} left", "")
        words = [metric_in_words(rows) for rows in curves.values()]
        for place, panel in enumerate(drawn):
            same = place % 2 and words[place] == words[place - 1]
            panel.set_ylabel("" if same else words[place])
        key_below(figure, *drawn)
        return finish(figure, path)


def pruning_by_stack(
    given: Given | pd.DataFrame,
    order: str | None = None,
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Quality over the share of heads removed, each stack pruned by itself.

    Michel et al. 2019, figure 4. `headcount prune --by-stack` measures it.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": ["enc", "enc"], "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_by_stack(frame).axes[0].lines[0].get_xydata().tolist()
    [[0.0, 30.0], [50.0, 28.0]]
    """
    rows = curve_of(given, metric)
    rows = rows[rows["scope"] != "all"]
    if not len(rows):
        raise UsageError(
            "The curve has no stack by itself; "
            "`headcount prune MODEL --task TASK --by-stack -o DIR` measures it."
        )
    rows = of_order(rows, order or str(rows["order"].iloc[0]))
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        for scope, own in rows.groupby("scope", sort=False):
            colour, marker = STACK_COLOURS[str(scope)]
            _share_line(axes[0, 0], own, str(scope), colour, marker)
        draw_whole(axes[0, 0], rows)
        axes[0, 0].set_xlabel("heads removed, percent of the stack")
        axes[0, 0].set_ylabel(metric_in_words(rows))
        axes[0, 0].legend()
        return finish(figure, path)


def _share_line(panel: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str) -> None:
    own = rows.sort_values("heads_left", ascending=False)
    left = own["heads_left"].to_numpy(float)
    share = own.assign(heads_left=100 * (1 - left / left[0]))
    draw_line(panel, share, label, colour, marker)


def _axes(panel: Axes, rows: pd.DataFrame, title: str, log: bool) -> None:
    panel.invert_xaxis()
    panel.set_title(title)
    if log:
        panel.set_yscale("log")


def _mark(panel: Axes, chosen: int) -> None:
    """A line at the heads that stay."""
    style: Style = {"color": INK, "linewidth": HAIRLINE, "gid": "chosen"}
    panel.axvline(chosen, **style)
    panel.annotate(f" {chosen} left", (chosen, 0.03), xycoords=("data", "axes fraction"))
