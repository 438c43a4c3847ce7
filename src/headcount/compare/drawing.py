"""Changes for a terminal: a map of heads, layers with their test, what rose and fell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headcount.columns import NA, Column
from headcount.compare.changes import Changes
from headcount.heat import STEPS, heat_steps

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["draw_columns", "draw_grid", "draw_layers", "draw_roles"]


def draw_grid(found: Changes, stack: str) -> Table:
    """Cosine of each head, layer by head: the darker, the more it changed."""
    from rich.table import Table
    from rich.text import Text

    cosine = found.heads["cosine"].xs(stack, level="stack").unstack("head")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("layer", style="dim")
    for head in cosine.columns:
        table.add_column(str(head), justify="right")
    # What changed most is darkest, so the shade is of 1 - cosine.
    steps = heat_steps(Column("change", range=(0, None)), 1 - cosine.to_numpy().ravel())
    shades = np.array(steps).reshape(cosine.shape)
    for layer, values, row in zip(cosine.index, cosine.to_numpy(), shades, strict=True):
        cells = [Text(_number(v), style=_shade(s)) for v, s in zip(values, row, strict=True)]
        table.add_row(f"{stack}.{layer}", *cells)
    return table


def draw_layers(layers: pd.DataFrame) -> Table:
    """Each layer's mean cosine and divergence, and whether it changed more than the others."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("layer", "cosine", "95%", "JS (nats a row)", "more than others", "p"):
        table.add_column(title, justify="left" if title == "layer" else "right", no_wrap=True)
    for row in layers.to_dict("records"):
        table.add_row(*_layer_cells(row))
    return table


def _layer_cells(row: Mapping[Any, Any]) -> list[str]:
    return [
        f"{row['stack']}.{row['layer']}",
        _number(row["cosine"]),
        f"{_number(row['cosine_low'])}–{_number(row['cosine_high'])}",
        _number(row["js"], 4),
        NA if np.isnan(row["more"]) else f"{row['more']:+.3f}",
        NA if np.isnan(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}",
    ]


def draw_columns(found: Changes) -> Table:
    """For each column its mean change, and in how many heads it rose or fell beyond doubt."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("column", "mean change", "rose", "fell", "most"):
        table.add_column(title, justify="right" if title != "column" else "left", no_wrap=True)
    for row in found.sure().to_dict("records"):
        values = found.heads[row["column"]]
        if values.abs().max() == 0:
            continue
        stack, layer, head = values.abs().idxmax()
        most = f"{stack}.{layer}.{head} {values.loc[stack, layer, head]:+.3f}"
        change = f"{row['mean_change']:+.3f}"
        table.add_row(row["column"], change, str(row["rose"]), str(row["fell"]), most)
    return table


def draw_roles(roles: pd.DataFrame) -> Table:
    """Roles that were lost or won; those that were kept are counted by the caller."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("head", "role", "label", "change", "before", "after"):
        table.add_column(title, justify="right" if title in ("before", "after") else "left")
    for row in roles[roles["change"] != "kept"].to_dict("records"):
        head = f"{row['stack']}.{row['layer']}.{row['head']}"
        figures = (_number(row["value_before"], 2), _number(row["value_after"], 2))
        words = (head, row["role"], row["label"], row["change"], *figures)
        table.add_row(*(Text(str(word)) for word in words))
    return table


def _number(value: float, digits: int = 3) -> str:
    return NA if np.isnan(value) else f"{value:.{digits}f}"


def _shade(step: int) -> str:
    """A darker ground for a higher step."""
    shades = ("", "on rgb(60,60,90)", "on rgb(50,80,150)", "on rgb(170,90,40)", "on rgb(190,40,40)")
    return shades[step * len(shades) // (STEPS + 1)]
