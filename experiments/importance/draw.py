"""The figures of the page, from its JSON alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import headcount as hc
from headcount.heads import Head, parse_head

INK = "#333333"
COLOURS = {"all": INK, "enc": "#12419b", "dec": "#a0572a", "cross": "#03875a"}


def draw(told: dict[str, Any], folder: Path) -> None:
    """Every figure for which there are numbers."""
    judged = {name: case for name, case in told["cases"].items() if "judged" in case}
    if judged:
        _save(_masked(judged), folder / "importance-masked.svg")
    translations = {n: c for n, c in told["cases"].items() if c["model"] == "translator"}
    if translations:
        _save(_relevance(translations), folder / "importance-relevance.svg")
    _save(_agreement(told["agreement"]), folder / "importance-agreement.svg")
    runs = {name: pd.DataFrame(rows) for name, rows in told["over training"].items()}
    hc.plot.order_over_training(runs, width="page", path=folder / "importance-training.svg")


def _save(figure: Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _panel(panel: Axes, title: str, x: str = "", y: str = "") -> None:
    panel.set_title(title, fontsize=9, loc="left", color=INK)
    panel.set_xlabel(x, fontsize=8)
    panel.set_ylabel(y, fontsize=8)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _masked(cases: dict[str, Any]) -> Figure:
    """Michel et al.'s figure 1: how many heads leave which score when they are masked."""
    figure, axes = plt.subplots(1, len(cases), figsize=(2.9 * len(cases), 2.7), squeeze=False)
    for panel, (name, case) in zip(axes[0], cases.items(), strict=True):
        judged = case["judged"]
        panel.hist(list(judged["after"].values()), bins=25, color=COLOURS["enc"])
        panel.axvline(judged["baseline"], color=INK, linewidth=0.9, linestyle=":")
        _panel(panel, f"{name}, {judged['examples']} examples", judged["metric"], "heads")
    return figure


def _grid(values: dict[str, float]) -> np.ndarray:
    """Encoder heads as `[layer, head]`."""
    heads = {parse_head(name): value for name, value in values.items()}
    enc = [head for head in heads if head.stack == "enc"]
    grid = np.full((1 + max(h.layer for h in enc), 1 + max(h.index for h in enc)), np.nan)
    for head in enc:
        grid[head.layer, head.index] = heads[head]
    return grid


def _relevance(cases: dict[str, Any]) -> Figure:
    """Voita et al.'s figures 1 and 2: relevance and confidence of every encoder head."""
    figure, axes = plt.subplots(len(cases), 3, figsize=(9, 2.9 * len(cases)), squeeze=False)
    for row, (name, case) in zip(axes, cases.items(), strict=True):
        for panel, score in zip(row, ("relevance", "confidence"), strict=False):
            drawn = panel.imshow(_grid(case["scores"][score]), cmap="Blues", aspect="auto")
            figure.colorbar(drawn, ax=panel).ax.tick_params(labelsize=6)
            _panel(panel, f"{name}: {score}, encoder", "head", "layer")
        _scatter(row[2], case["scores"])
        _panel(row[2], f"{name}: all heads", "confidence", "relevance")
    return figure


def _scatter(panel: Axes, scores: dict[str, Any]) -> None:
    heads: list[Head] = [parse_head(name) for name in scores["relevance"]]
    for stack in ("enc", "dec", "cross"):
        own = [str(head) for head in heads if head.stack == stack]
        x, y = ([scores[score][name] for name in own] for score in ("confidence", "relevance"))
        panel.scatter(x, y, s=9, color=COLOURS[stack], alpha=0.7, linewidths=0, label=stack)
    panel.legend(fontsize=7, frameon=False)


def _agreement(groups: dict[str, Any]) -> Figure:
    """Spearman's correlation of every two scores, on every two sets of examples."""
    figure, axes = plt.subplots(1, len(groups), figsize=(6.2 * len(groups), 5.6), squeeze=False)
    for panel, (group, rows) in zip(axes[0], groups.items(), strict=True):
        rows = [row for row in rows if row["kind"] == "spearman" and row["stack"] == "all"]
        names = _ordered(rows)
        grid = np.eye(len(names))
        for row in rows:
            i, j = names.index(row["first"]), names.index(row["second"])
            grid[i, j] = grid[j, i] = np.nan if row["value"] is None else row["value"]
        panel.imshow(grid, cmap="RdBu_r", vmin=-1, vmax=1)
        panel.set_xticks(range(len(names)), names, rotation=90)
        panel.set_yticks(range(len(names)), names)
        for (i, j), value in np.ndenumerate(grid):
            white = "white" if abs(value) > 0.6 else INK
            panel.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=5, color=white)
        _panel(panel, f"{group}: Spearman over all heads")
    return figure


def _ordered(rows: list[dict[str, Any]]) -> list[str]:
    """The scores, those of one measure together."""
    names = list(dict.fromkeys(name for row in rows for name in (row["first"], row["second"])))
    return sorted(names, key=lambda name: name.split(" on ")[0])
