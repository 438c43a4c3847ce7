"""Spearman's correlation of every two scores, on every two sets of examples, as a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from headcount.rooms.figures.figure import DIVERGING, INK, Style, finish, panels, paper
from headcount.rooms.figures.grids import colour_bar, draw_cells
from research.names import title

__all__ = ["draw_agreement"]

Rows = list[dict[str, Any]]


def draw_agreement(rows: Rows, path: Path) -> None:
    """Scores of one measure stand together; blue agrees, red is the other way round."""
    names, grid = _matrix([r for r in rows if r["kind"] == "spearman" and r["stack"] == "all"])
    many = len(names) > 12
    with paper():
        figure, axes = panels(1, 1, width="page" if many else "column", height=5.6 if many else 2.9)
        panel = axes[0, 0]
        mesh = draw_cells(panel, grid, (-1.0, 1.0, DIVERGING), ticks=False)
        for (line, column), value in np.ndenumerate(grid):
            if np.isfinite(value):
                style: Style = {"ha": "center", "va": "center", "fontsize": 5.5}
                ink = "white" if abs(value) > 0.6 else INK
                said = f"{value:.1f}".replace("-0.0", "0.0")
                panel.text(column + 0.5, line + 0.5, said, color=ink, **style)
        shown = [_label(name) for name in names]
        panel.set_xticks(np.arange(len(names)) + 0.5, shown, rotation=90)
        panel.set_yticks(np.arange(len(names)) + 0.5, shown)
        colour_bar(figure, mesh, panel, "Spearman's correlation over all heads")
        finish(figure, path)


def _matrix(rows: Rows) -> tuple[list[str], np.ndarray]:
    """The scores, those of one measure together, and their correlations."""
    found = dict.fromkeys(name for row in rows for name in (row["first"], row["second"]))
    names = sorted(found, key=lambda name: name.split(" on ")[0])
    grid = np.eye(len(names))
    for row in rows:
        one, two = names.index(row["first"]), names.index(row["second"])
        grid[one, two] = grid[two, one] = np.nan if row["value"] is None else row["value"]
    return names, grid


def _label(name: str) -> str:
    """Short: `gradient, SST-2`."""
    score, data = name.split(" on ")
    base, again, _ = data.partition("-again")
    return f"{score}, {title(base)}{' again' if again else ''}"
