"""Clark et al.'s figure 6 for each model, and Kovaleva et al.'s figure 4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc
from headcount.records.heads import parse_head
from research.names import title

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """Every figure for which there are numbers."""
    families, compare = (results / f"together-{part}.json" for part in ("families", "compare"))
    if families.exists():
        for name, one in json.loads(families.read_text())["models"].items():
            _plane(one["heads"], out / f"together-families-{name}.svg")
    if compare.exists():
        models = json.loads(compare.read_text())["models"]
        frames = {title(name): _cosines(one["cosine"]) for name, one in models.items()}
        hc.plot.changes(frames, path=out / "together-compare.svg")


def _plane(heads: dict[str, Any], path: Path) -> None:
    """Heads near those that attend alike, by layer and by role."""
    places = np.array([one["place"] for one in heads.values()])
    rows = [(*parse_head(name), one["role"]) for name, one in heads.items() if one["role"]]
    roles = pd.DataFrame(rows, columns=["stack", "layer", "head", "role"])
    hc.plot.head_map({"heads": np.array(list(heads)), "mds": places}, roles=roles, path=path)


def _cosines(grid: list[list[float]]) -> pd.DataFrame:
    rows = [("enc", layer, head, v) for layer, row in enumerate(grid) for head, v in enumerate(row)]
    return pd.DataFrame(rows, columns=["stack", "layer", "head", "cosine"])
