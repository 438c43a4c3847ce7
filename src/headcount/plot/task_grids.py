"""Grids of layers by heads side by side, one a task: changes, features, links.

Kovaleva et al. 2019, figures 4 and 5, and section 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.plot.heat_map import colour_bar, draw_cells, scale_of
from headcount.plot.layout import label_outer, panels, wrapped
from headcount.plot.needs import need_columns, need_rows
from headcount.plot.reading import (
    Frames,
    Many,
    by_name,
    frame_of,
    frames_by_name,
    stack_grid,
    table_of,
)
from headcount.plot.style import Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["attention_to", "changes", "token_to_token"]

_LINKS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
_INDEX = ["stack", "layer", "head"]


def changes(
    given: Frames,
    column: str = "cosine",
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How alike a head's maps are before and after training on a task, a grid a task.

    Kovaleva et al. 2019, figure 4. Any other column of `changes.parquet` can be drawn.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"stack": "enc", "layer": [0, 0], "head": [0, 1], "cosine": [1, 0.5]})
    >>> changes(frame).axes[0].collections[0].get_array().tolist()
    [[1.0, 0.5]]
    """
    grids = {}
    for name, one in frames_by_name(given).items():
        frame = frame_of(one, "changes")
        need_rows(frame, [*_INDEX, column], "changes", known=column)
        grids[name] = stack_grid(frame.set_index(_INDEX)[column], stack)
    with paper():
        diverging = column not in ("cosine", "js")
        return finish(_row({column: grids}, width, diverging), path)


def attention_to(
    given: Many,
    features: Sequence[str] = ("separator", "first"),
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How much attention a kind of token gets from each head, a row a kind, a grid a task.

    Kovaleva et al. 2019, figure 5 ([SEP] and [CLS]); also noun, verb, pronoun, subject, object
    and negation.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"to_noun": [0.3]})
    >>> attention_to(table, ["noun"]).axes[0].collections[0].get_array().tolist()
    [[0.3]]
    """
    columns = {f"to {name}": f"to_{name}" for name in features}
    return _columns(given, columns, stack, width, path)


def token_to_token(
    given: Many,
    links: Sequence[str] = _LINKS,
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Attention along links such as subject to verb, a row a link, a grid a task.

    Kovaleva et al. 2019, section 4.3, token to token.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"subject_to_verb": [0.1]})
    >>> token_to_token(table, ["subject_to_verb"]).axes[0].get_title(loc="left")
    'subject to verb'
    """
    return _columns(given, {name.replace("_", " "): name for name in links}, stack, width, path)


def _columns(
    given: Many,
    columns: Mapping[str, str],
    stack: str,
    width: Width,
    path: str | Path | None,
) -> Figure:
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    rows: dict[str, dict[str, np.ndarray]] = {}
    for table in tables.values():
        need_columns(table, columns.values())
    for title, column in columns.items():
        for name, table in tables.items():
            rows.setdefault(title, {})[name] = stack_grid(table.frame[column], stack)
    with paper():
        return finish(_row(rows, width, diverging=False), path)


def _row(rows: Mapping[str, Mapping[str, np.ndarray]], width: Width, diverging: bool) -> Figure:
    """A row of grids for each thing drawn, a grid for each source; a row shares its colours."""
    most = max(map(len, rows.values()))
    if most == 1 and len(rows) > 1:  # one source: the things stand side by side, two in a row
        return _side_by_side(rows, width)
    if len(rows) == 1:
        return _wrapped(*next(iter(rows.items())), width, diverging)
    figure, axes = panels(len(rows), most, width=width, height=1.8)
    for line, (title, grids) in zip(axes, rows.items(), strict=True):
        _same_colours(figure, list(line), title, grids, diverging)
    label_outer(list(axes.flat), "head", "layer")
    return figure


def _wrapped(title: str, grids: Mapping[str, np.ndarray], width: Width, diverging: bool) -> Figure:
    """One thing of several sources, in rows of three where they are many."""
    figure, drawn = wrapped(len(grids), width=width, height=1.8)
    _same_colours(figure, drawn, title, grids, diverging)
    for panel, name in zip(drawn, grids, strict=True):
        panel.set_title(name or title)  # the bar says what is drawn
    label_outer(drawn, "head", "layer")
    return figure


def _same_colours(
    figure: Figure,
    chosen: list[Axes],
    title: str,
    grids: Mapping[str, np.ndarray],
    diverging: bool,
) -> None:
    top = 1.0 if title == "cosine" else None
    scale = scale_of(list(grids.values()), diverging=diverging, top=top)
    for panel, (name, grid) in zip(chosen, grids.items(), strict=True):
        mesh = draw_cells(panel, grid, scale)
        panel.set_title(f"{name}, {title}" if name else title)
    colour_bar(figure, mesh, chosen, title)


def _side_by_side(rows: Mapping[str, Mapping[str, np.ndarray]], width: Width) -> Figure:
    figure, drawn = wrapped(len(rows), most=2, width=width, height=1.8)
    for panel, (title, grids) in zip(drawn, rows.items(), strict=True):
        grid = next(iter(grids.values()))
        mesh = draw_cells(panel, grid, scale_of([grid]))
        panel.set_title(title)
        colour_bar(figure, mesh, panel, "")
    label_outer(drawn, "head", "layer")
    return figure
