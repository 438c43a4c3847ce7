"""Clark et al.'s figures 2 and 4: a point a head, a line through the means of layers."""

from __future__ import annotations

import json
from pathlib import Path

import headcount as hc
from research.names import title
from research.tables import table

__all__ = ["DRAWN", "draw"]

#: The columns that the figures need of every head.
DRAWN = (
    *("previous", "next", "self", "first", "separator", "punctuation"),
    *("entropy", "entropy_first", "entropy_uniform"),
)


def draw(results: Path, out: Path) -> None:
    """Positions, token types and entropy of both models."""
    models = json.loads((results / "surface.json").read_text())["models"]
    tables = {title(name): table(one["headcount"]["heads"]) for name, one in models.items()}
    hc.plot.positions(tables, path=out / "surface-positions.svg")
    hc.plot.token_types(tables, path=out / "surface-tokens.svg")
    hc.plot.entropies(tables, path=out / "surface-entropy.svg")
