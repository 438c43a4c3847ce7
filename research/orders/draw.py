"""Michel et al.'s figure 3 for orders of removal on the bundled translator."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

import headcount as hc

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """The curves of all orders."""
    told = json.loads((results / "pruning-orders.json").read_text())
    hc.plot.pruning_curves(pd.DataFrame(told["curve"]), path=out / "pruning-orders.svg")
