"""Spearman's correlation of every two scores, on every two sets of examples, as a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from headcount.rooms.figures.figure import sheet
from headcount.rooms.figures.gallery import DIVERGING, colour_bar, draw_cells
from research.names import title

__all__ = ["draw_agreement"]

Rows = list[dict[str, Any]]


def draw_agreement(rows: Rows, path: Path) -> None:
    """Scores of one measure stand together; blue agrees, red is the other way round."""
    names, grid = _matrix([r for r in rows if r["kind"] == "spearman" and r["stack"] == "all"])
    many = len(names) > 12
    shown = [_label(name) for name in names]
    said = np.array([[f"{value:.1f}".replace("-0.0", "0.0") for value in row] for row in grid])
    said[~np.isfinite(grid)] = ""
    height = 5.6 if many else 2.9
    with sheet(width="page" if many else "column", height=height, path=path) as (figure, (panel,)):
        mesh = draw_cells(panel, grid, (-1.0, 1.0, DIVERGING), texts=said, x=shown, y=shown)
        panel.tick_params(axis="x", rotation=90)
        colour_bar(figure, mesh, panel, "Spearman's correlation over all heads")


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
