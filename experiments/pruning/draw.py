"""The figures of the page, from the JSON of the parts alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["draw"]

INK = "#333333"
COLOURS = {
    "gradient": "#12419b",
    "gradient by layer": "#6f9bd8",
    "ablation": "#a0572a",
    "gates": "#03875a",
    "random": "#8a8a8a",
    "whole": INK,
}

Row = dict[str, Any]


def draw(folder: Path) -> None:
    """Every figure for which there are numbers."""
    classifiers, smollm2 = (folder / f"pruning-{part}.json" for part in ("classifiers", "smollm2"))
    if classifiers.exists():
        cases = json.loads(classifiers.read_text())["cases"]
        _save(_classifiers(cases), folder / "pruning-classifiers.svg")
    if smollm2.exists():
        told = json.loads(smollm2.read_text())
        _save(_groups(told), folder / "pruning-smollm2.svg")


def _save(figure: Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _classifiers(cases: dict[str, Any]) -> Figure:
    """Michel et al.'s figure 3, with learned and random sets: bare on top, healed below."""
    wide = len(cases)
    figure, axes = plt.subplots(2, wide, figsize=(3.4 * wide, 5.6), squeeze=False, sharex=True)
    for column, (name, case) in enumerate(cases.items()):
        for row, healed in enumerate((False, True)):
            panel = axes[row, column]
            own = [line for line in case["curve"] if line["healed"] == healed]
            _curves(panel, own, "heads_left", "value")
            panel.axhline(case["whole"], color=INK, linewidth=0.8, linestyle=":")
            title = f"{name}, {'healed' if healed else 'as it is'}"
            _panel(panel, title, "heads left" if healed else "", "accuracy" if not column else "")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure


def _groups(told: dict[str, Any]) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), squeeze=False, sharey=True)
    for panel, healed in zip(axes[0], (False, True), strict=True):
        own = [row for row in told["curve"] if row["healed"] == healed]
        _curves(panel, own, "units_left", "perplexity")
        panel.axhline(told["whole"]["perplexity"], color=INK, linewidth=0.8, linestyle=":")
        panel.set_yscale("log")
        _panel(panel, "healed" if healed else "as it is", "groups left", "perplexity")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure


def _curves(panel: Axes, rows: Sequence[Row], x: str, y: str) -> None:
    """A line an order with its interval; random orders are drawn thin, under one name."""
    for order in dict.fromkeys(row["order"] for row in rows):
        own = sorted((row for row in rows if row["order"] == order), key=lambda row: row[x])
        kind = order.split(" ")[0] if order.startswith("random") else order
        name = kind if kind != "random" or order == "random 0" else None
        places = [row[x] for row in own]
        style: dict[str, Any] = {"color": COLOURS[kind], "label": name}
        if kind == "random":
            panel.plot(places, [row[y] for row in own], linewidth=0.7, **style)
            continue
        low, high = (np.array([row[f"{_stem(y)}{end}"] for row in own]) for end in ("low", "high"))
        panel.fill_between(places, low, high, color=COLOURS[kind], alpha=0.12, linewidth=0)
        panel.plot(places, [row[y] for row in own], marker="o", markersize=2.5, **style)


def _stem(y: str) -> str:
    return "" if y == "value" else f"{y}_"


def _panel(panel: Axes, title: str, x: str = "", y: str = "") -> None:
    panel.set_title(title, fontsize=9, loc="left", color=INK)
    panel.set_xlabel(x, fontsize=8)
    panel.set_ylabel(y, fontsize=8)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
