"""Quality over the heads that are left: by order, by stack, and at stages of training.

Michel et al. 2019, figures 3 to 5; Voita et al. 2019, figure 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.plot.curve_lines import (
    curve_of,
    draw_line,
    draw_orders,
    draw_whole,
    looks_of,
    percent_left,
)
from headcount.plot.reading import Given
from headcount.plot.style import (
    INK,
    STACK_COLOURS,
    Style,
    Width,
    finish,
    key_below,
    panels,
    paper,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["gated_quality", "pruning_by_stack", "pruning_curves", "pruning_over_training"]


def pruning_curves(
    given: Given | pd.DataFrame | Mapping[str, Given | pd.DataFrame],
    metric: str | None = None,
    *,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Quality over heads left, a line an order with its 95% band, one panel a run.

    Michel et al. 2019, figure 3.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_curves(frame).axes[0].lines[0].get_xydata().tolist()
    [[8.0, 30.0], [4.0, 28.0]]
    """
    curves = {name: curve_of(one, metric) for name, one in _named(given).items()}
    looks = looks_of(str(order) for rows in curves.values() for order in rows["order"])
    with paper():
        figure, axes = panels(1, len(curves), width=width, height=2.5)
        for panel, (name, rows) in zip(axes[0], curves.items(), strict=True):
            whole = rows[rows["scope"] == "all"] if (rows["scope"] == "all").any() else rows
            draw_orders(panel, whole, looks)
            draw_whole(panel, whole)
            _axes(panel, rows, name)
        key_below(figure, *axes[0])
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
    rows = _of_order(rows, order or str(rows["order"].iloc[0]))
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        for scope, own in rows.groupby("scope", sort=False):
            colour, marker = STACK_COLOURS[str(scope)]
            _share_line(axes[0, 0], own, str(scope), colour, marker)
        draw_whole(axes[0, 0], rows)
        axes[0, 0].set_xlabel("heads removed, percent of the stack")
        axes[0, 0].set_ylabel(_said(rows))
        axes[0, 0].legend()
        return finish(figure, path)


def pruning_over_training(
    given: Mapping[object, Given | pd.DataFrame],
    order: str | None = None,
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """What pruning leaves of the score, in percent of the unpruned model of the same epoch.

    Michel et al. 2019, figure 5. Keys are epochs or steps, values their runs or curves.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 15], "low": [29.0, 14],
    ...     "high": [31.0, 16]})
    >>> pruning_over_training({1: frame, 2: frame}).axes[0].lines[1].get_xydata().tolist()
    [[0.0, 100.0], [50.0, 50.0]]
    """
    from matplotlib import colormaps

    if not isinstance(given, Mapping) or not given:
        raise UsageError("Give a mapping of epochs to curves or runs, one entry a checkpoint.")
    curves = {str(epoch): curve_of(one, metric) for epoch, one in given.items()}
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.4)
        for place, (epoch, rows) in enumerate(curves.items()):
            chosen = _of_order(rows[rows["scope"] == "all"], order or str(rows["order"].iloc[0]))
            shade = colormaps["viridis"](0.9 * place / max(1, len(curves) - 1))
            x, y = percent_left(chosen)
            whole = f"{epoch} ({chosen.sort_values('step')['value'].iloc[0]:.3g} unpruned)"
            style: Style = {"marker": "o", "gid": f"epoch {epoch}"}
            axes[0, 0].plot(x, y, color=shade, label=whole, **style)
        axes[0, 0].set_xlabel("heads removed, percent")
        axes[0, 0].set_ylabel(f"percent of the unpruned {rows['metric'].iloc[0]}")
        axes[0, 0].legend(title="trained for", title_fontsize=7)
        return finish(figure, path)


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
    rows = _of_order(curve_of(given, metric), order)
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
        panel.set_ylabel(_said(rows))
        return finish(figure, path)


def _named(
    given: Given | pd.DataFrame | Mapping[str, Given | pd.DataFrame],
) -> dict[str, Given | pd.DataFrame]:
    if isinstance(given, Mapping):
        if not given:
            raise UsageError("There is nothing to draw; give one run or more.")
        return {str(name): one for name, one in given.items()}
    return {"": given}


def _of_order(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    there = list(dict.fromkeys(rows["order"]))
    if order not in there:
        raise UsageError(f"The curve has no order '{order}'; it has {', '.join(there)}.")
    return rows[rows["order"] == order]


def _apart(counts: list[int]) -> list[int]:
    """Of rising numbers those with room between them on a logarithmic axis, the last included."""
    kept: list[int] = []
    for count in reversed(counts):
        if not kept or count * 1.2 <= kept[-1]:
            kept.append(count)
    return kept[::-1]


def _share_line(panel: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str) -> None:
    own = rows.sort_values("heads_left", ascending=False)
    left = own["heads_left"].to_numpy(float)
    share = own.assign(heads_left=100 * (1 - left / left[0]))
    draw_line(panel, share, label, colour, marker)


def _said(rows: pd.DataFrame) -> str:
    """The metric, with the way that is good where it is not upwards."""
    name = str(rows["metric"].iloc[0])
    worse = "more" in rows and (rows["more"] == "worse").any()
    return f"{name} (lower is better)" if worse else name


def _axes(panel: Axes, rows: pd.DataFrame, title: str) -> None:
    panel.invert_xaxis()
    panel.set_xlabel("heads left")
    panel.set_ylabel(_said(rows))
    panel.set_title(title)
