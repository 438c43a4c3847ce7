"""Each head as a point between two numbers: one score on two data sets, or two scores.

Michel et al. 2019, figure 2; Voita et al. 2019, section 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount import stats
from headcount.errors import UsageError
from headcount.plot.layout import key_below, panels, wrapped
from headcount.plot.needs import need_columns
from headcount.plot.reading import Given, Many, by_name, table_of
from headcount.plot.style import STACK_COLOURS, Style, Width, finish, paper
from headcount.stats.agreement import Kind
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["two_data_sets", "two_scores"]


def two_data_sets(
    first: Given,
    second: Given,
    column: str = "ablation",
    *,
    names: tuple[str, str] = ("first data set", "second data set"),
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Each head's score on one data set against its score on another, with their correlation.

    Michel et al. 2019, figure 2.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> one, two = (HeadTable.of(heads, {"ablation": v}) for v in ([1, 2, 3, 4.0], [2, 1, 3, 4.0]))
    >>> two_data_sets(one, two).axes[0].get_title(loc="left")
    "Pearson's r = 0.80 [...]"
    """
    tables = table_of(first), table_of(second)
    for table in tables:
        need_columns(table, [column])
    if tables[0].heads != tables[1].heads:
        raise UsageError("The two tables have different heads; compare one model on two data sets.")
    x, y = (table.numbers(column) for table in tables)
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.8)
        panel = axes[0, 0]
        _points(panel, tables[0], x, y)
        panel.set_title(f"Pearson's r = {_agreement(x, y, 'pearson')}")
        panel.set_xlabel(f"{tables[0].column(column).title}, {names[0]}")
        panel.set_ylabel(f"{tables[1].column(column).title}, {names[1]}")
        if len(tables[0].stacks) > 1:
            key_below(figure, panel)
        return finish(figure, path)


def two_scores(
    given: Many,
    first: str = "confidence",
    second: str = "relevance",
    *,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Each head's second score against its first, with Spearman's correlation by stack; several.

    After Voita et al. 2019, section 4: whether heads that are confident are those that matter.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"confidence": [1, 2, 3, 4.0], "relevance": [2, 1, 3, 4.0]})
    >>> two_scores(table).axes[0].get_legend_handles_labels()[1]
    ['enc 0.80 [...]']
    """
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    for table in tables.values():
        need_columns(table, [first, second])
    with paper():
        figure, drawn = wrapped(len(tables), most=2, width=width, height=2.8)
        for panel, (name, table) in zip(drawn, tables.items(), strict=True):
            x, y = table.numbers(first), table.numbers(second)
            _points(panel, table, x, y, tell=True)
            panel.set_title(name)
            panel.set_xlabel(table.column(first).title)
            panel.set_ylabel(table.column(second).title)
            panel.legend(title="Spearman's correlation", title_fontsize=7, alignment="left")
        return finish(figure, path)


def _points(
    panel: Axes, table: HeadTable, x: np.ndarray, y: np.ndarray, tell: bool = False
) -> None:
    """The heads of each stack in its colour; its label may tell how far the numbers agree."""
    known = np.isfinite(x) & np.isfinite(y)
    stacks = np.array([head.stack for head in table.heads])
    for stack in table.stacks:
        own = known & (stacks == stack)
        colour, marker = STACK_COLOURS[stack]
        label = f"{stack} {_agreement(x[own], y[own], 'spearman')}" if tell else stack
        style: Style = {"s": 12, "alpha": 0.7, "linewidths": 0, "gid": f"stack {stack}"}
        panel.scatter(x[own], y[own], color=colour, marker=marker, label=label, **style)


def _agreement(x: np.ndarray, y: np.ndarray, kind: Kind) -> str:
    """A correlation with its interval, in two figures; a dash where heads are too few or alike."""
    known = np.isfinite(x) & np.isfinite(y)
    found = stats.rank_agreement(x[known], y[known], kind)
    if np.isnan(found.value):
        return "–"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
