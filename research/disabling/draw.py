"""Kovaleva et al.'s figures 8 and 9: what disabling heads and whole layers gains, in points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.records.heads import parse_head
from research.names import title

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """A row of grids for each mode of disabling, a grid a task."""
    told = json.loads((results / "together-disabling.json").read_text())
    grids = {
        f"{title(task)}, {mode}": _costs(found, mode)
        for mode in told["config"]["modes"]
        for task, found in told["tasks"].items()
    }
    hc.plot.disabling(grids, path=out / "together-disabling.svg")


def _costs(found: dict[str, Any], mode: str) -> hc.HeadTable:
    """What each head, and each whole layer, is worth to the task."""
    heads = {parse_head(name): -100 * gain for name, gain in found[f"head {mode}"]["gains"].items()}
    layers = [-100 * gain for gain in found[f"layer {mode}"]["gains"].values()]
    values = {
        "ablation": list(heads.values()),
        "ablation_layer": [layers[head.layer] for head in heads],
    }
    return hc.HeadTable.of(list(heads), values, [hc.Column("ablation", unit="points")])
