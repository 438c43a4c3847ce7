"""Clark et al.'s figures 2 and 4: a point a head, a line through the means of layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headcount as hc
from experiments.names import title
from experiments.tables import table

__all__ = ["DRAWN", "draw"]

#: The columns that the figures need of every head.
DRAWN = (
    *("previous", "next", "self", "first", "separator", "separator_to_separator", "punctuation"),
    *("entropy", "entropy_first", "entropy_uniform"),
)


def draw(results: Path, out: Path) -> None:
    """Positions, token types, separators and entropy of both models."""
    models = json.loads((results / "surface.json").read_text())["models"]
    tables = {title(name): _table(one["headcount"]) for name, one in models.items()}
    hc.plot.positions(tables, path=out / "surface-positions.svg")
    hc.plot.token_types(tables, path=out / "surface-tokens.svg")
    hc.plot.to_separators(tables, path=out / "surface-separators.svg")
    hc.plot.entropies(tables, path=out / "surface-entropy.svg")


def _table(told: dict[str, Any]) -> hc.HeadTable:
    """Every head where the JSON has them; else one point a layer, the mean of its heads."""
    return table(told["heads"] if "heads" in told else _means(told["findings"]))


def _means(found: dict[str, Any]) -> dict[str, Any]:
    layers = len(found["mean_self_by_layer"])
    columns = {
        name: found.get(f"mean_{name}_by_layer", found.get(f"{name}_by_layer")) for name in DRAWN
    }
    columns["entropy_uniform"] = [found["entropy_uniform"]] * layers
    return {"index": [f"enc.{layer}.0" for layer in range(layers)], **columns}
