"""Columns of the head table as grids of layers by heads, one a stack, with the roles marked.

Voita et al. 2019, figures 1 and 2: relevance, confidence, and what the heads do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.columns import Column
from headcount.plot.heat_map import colour_bar, draw_cells, draw_roles, role_key, scale_of
from headcount.plot.layout import panels
from headcount.plot.needs import need_columns
from headcount.plot.reading import Given, grid_of, roles_of, table_of
from headcount.plot.style import Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["head_grids"]


def head_grids(
    given: Given,
    columns: Sequence[str] = ("relevance", "confidence"),
    *,
    roles: bool = True,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """One row of grids a column, one grid a stack; all stacks share the column's colours.

    Voita et al. 2019, figures 1 and 2.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]})
    >>> len(head_grids(table, ["confidence"]).axes)
    2
    """
    table = table_of(given)
    need_columns(table, columns)
    held = roles_of(given) if roles else {}
    stacks = table.stacks
    with paper():
        figure, axes = panels(len(columns), len(stacks), width=width, height=1.8)
        for row, name in zip(axes, columns, strict=True):
            about = table.column(name)
            table.numbers(name)  # a column of words is refused here
            grids = {stack: grid_of(table.frame[name], stack) for stack in stacks}
            scale = scale_of(list(grids.values()), diverging=about.diverging)
            for panel, (stack, grid) in zip(row, grids.items(), strict=True):
                mesh = draw_cells(panel, grid, scale)
                draw_roles(panel, held, stack)
                panel.set_title(f"{about.title}, {stack}")
            colour_bar(figure, mesh, list(row), _label(about))
            row[0].set_ylabel("layer")
        for panel in axes[-1]:
            panel.set_xlabel("head")
        role_key(figure, sorted({role for found in held.values() for role in found}))
        return finish(figure, path)


def _label(about: Column) -> str:
    """What a darker colour means."""
    return about.unit or ("" if about.more == "more" else f"{about.more} →")
