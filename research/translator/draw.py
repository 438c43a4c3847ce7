"""How the translators were trained, and Michel et al.'s figure 5: what pruning leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from headcount.rooms.figures.figure import SERIES, key_below, sheet

__all__ = ["draw"]

KEPT = Path(__file__).parent / "results"
LEAST = 5.0  # BLEU: what is left of less says nothing
SHOWN = {"dev_loss": "dev loss, nats a token", "dev_bleu": "dev BLEU, greedy"}


def draw(results: Path, out: Path) -> None:
    """Both figures; their numbers lie in `research/translator/results`."""
    draw_training(out / "translator-training.svg")
    draw_dynamics(out / "translator-dynamics.svg")


def draw_training(path: Path) -> None:
    """Dev loss and BLEU over the epochs of both translators."""
    with sheet(2, columns=2, height=2.1, path=path) as (figure, panels):
        for name, (colour, marker) in zip(("en-de", "en-ru"), SERIES, strict=False):
            curve = json.loads((KEPT / name / "curve.json").read_text())
            points = [point for point in curve if "dev_bleu" in point]
            epochs = [point["epoch"] for point in points]
            for panel, key in zip(panels, SHOWN, strict=True):
                values = [point[key] for point in points]
                panel.plot(epochs, values, color=colour, marker=marker, label=name)
        for panel, title in zip(panels, SHOWN.values(), strict=True):
            panel.set_title(title)
            panel.set_xlabel("epoch")
        key_below(figure)


def draw_dynamics(path: Path) -> None:
    """What is left of the BLEU of each snapshot as heads are shut, least important first."""
    told = json.loads((KEPT / "en-de" / "dynamics.json").read_text())
    curves = {f"{shot['step']:,} steps": _curve(shot) for shot in told["snapshots"]}
    grown = {step: rows for step, rows in curves.items() if rows["value"].iloc[0] > LEAST}
    hc.plot.pruning_over_training(grown, path=path)


def _curve(shot: dict[str, Any]) -> pd.DataFrame:
    rows = pd.DataFrame(shot["curve"])
    left = len(shot["order"]) - rows["shut"]
    rows = rows.assign(step=range(len(rows)), heads_left=left, value=rows["bleu"], metric="BLEU")
    return rows.assign(order="gradient", scope="all", low=float("nan"), high=float("nan"))
