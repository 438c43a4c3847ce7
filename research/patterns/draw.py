"""Kovaleva et al.'s figure 2: shares of patterns by task, and by layer of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from research.names import title

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """Base models in the first row, classifiers below them; then one bar for each."""
    shares = json.loads((results / "together-patterns.json").read_text())["shares"]
    if not shares:
        return
    frames = {
        f"{title(task)}, {which}": _by_layer(both[which])
        for which in ("base", "tuned")
        for task, both in shares.items()
    }
    hc.plot.patterns(frames, path=out / "together-patterns.svg")
    hc.plot.patterns(frames, by="task", path=out / "together-patterns-tasks.svg")


def _by_layer(found: dict[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame({f"pattern_{name}": each for name, each in found["layers"].items()})
    return frame.assign(stack="enc", layer=range(len(frame)))
