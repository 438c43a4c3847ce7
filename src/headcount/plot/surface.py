"""Where heads look, layer by layer: positions, token types, entropy.

Clark et al. 2019, figures 2 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.plot.by_layer import draw_by_layer
from headcount.plot.layout import key_below, label_outer, panels, wrapped
from headcount.plot.needs import need_columns
from headcount.plot.reading import Many, by_name, grid_of, stacks_of, table_of, titled
from headcount.plot.style import HAIRLINE, INK, Style, Width, finish, paper
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["entropies", "positions", "to_separators", "token_types"]

_POSITIONS = {"previous": "previous token", "next": "next token", "self": "the token itself"}
_TYPES = {"separator": "separator", "first": "first token", "punctuation": "punctuation"}
_SEPARATORS = {"separator": "from all tokens", "separator_to_separator": "from separators"}
_ENTROPIES = {"entropy": "all queries", "entropy_first": "the first token's query"}


def positions(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to the token before, the token after and the token itself, by layer.

    Clark et al. 2019, section 3.1.

    >>> from headcount import Head, HeadTable
    >>> shares = {"previous": [0.1], "next": [0.2], "self": [0.7]}
    >>> positions(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].get_ylabel()
    'mean attention'
    """
    return _drawn(given, _POSITIONS, "mean attention", width, path)


def token_types(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to separators, to the first token ([CLS]) and to punctuation, by layer.

    Clark et al. 2019, figure 2, above.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "first": [0.1], "punctuation": [0.1]}
    >>> len(token_types(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].lines)
    3
    """
    return _drawn(given, _TYPES, "mean attention", width, path)


def to_separators(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to separators from all tokens and from separators themselves, by layer.

    Clark et al. 2019, figure 2, below.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "separator_to_separator": [0.9]}
    >>> figure = to_separators(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> figure.axes[0].lines[1].get_ydata().tolist()
    [0.9]
    """
    return _drawn(given, _SEPARATORS, "mean attention to separators", width, path)


def entropies(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Entropy of attention, of all queries and of the first token's; dotted is uniform attention.

    Clark et al. 2019, figure 4.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"entropy": [1.5], "entropy_first": [2.5]})
    >>> entropies(table).axes[0].get_ylabel()
    'entropy, nats'
    """
    return _drawn(given, _ENTROPIES, "entropy, nats", width, path)


def _drawn(
    given: Many, columns: Mapping[str, str], label: str, width: Width, path: str | Path | None
) -> Figure:
    """A panel for each stack of each source, with the layers below and the same scale in all."""
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    for table in tables.values():
        need_columns(table, columns)
    stacks = {name: stacks_of(table, columns) for name, table in tables.items()}
    with paper():
        figure, places = _places(stacks, width)
        for (name, stack), panel in places.items():
            draw_by_layer(panel, tables[name], stack, columns)
            _uniform(panel, tables[name], stack, columns)
            panel.set_title(titled(name, stack, stacks[name]))
        label_outer(list(places.values()), "layer", label)
        key_below(figure, *places.values())
        return finish(figure, path)


def _places(
    stacks: Mapping[str, list[str]], width: Width
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Sources of one stack stand side by side; of several stacks, each source has its row."""
    pairs = [(name, stack) for name, own in stacks.items() for stack in own]
    wide = max(map(len, stacks.values()))
    if wide == 1:
        figure, flat = wrapped(len(pairs), width=width, height=2.1, sharey=True)
        return figure, dict(zip(pairs, flat, strict=True))
    figure, axes = panels(len(stacks), wide, width=width, height=2.1, sharey=True)
    places: dict[tuple[str, str], Axes] = {}
    for row, (name, own) in zip(axes, stacks.items(), strict=True):
        places |= {(name, stack): panel for stack, panel in zip(own, row, strict=False)}
        for panel in row[len(own) :]:
            panel.set_axis_off()
    return figure, places


def _uniform(panel: Axes, table: HeadTable, stack: str, columns: Mapping[str, str]) -> None:
    """What uniform attention would have, where the table knows."""
    if "entropy" in columns and "entropy_uniform" in table.frame:
        grid = grid_of(table.frame["entropy_uniform"], stack)
        if not np.isfinite(grid).any():
            return
        value = float(np.nanmean(grid))
        style: Style = {"color": INK, "linewidth": HAIRLINE, "linestyle": ":", "gid": "uniform"}
        panel.axhline(value, label="uniform attention", **style)
