"""Clark et al.'s figures 2 to 4 from the tables: a point a head, a line through the layer means."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import headcount as hc
from experiments.surface.findings import by_layer

INK, FIRST, SECOND, THIRD = "#333333", "#12419b", "#a0572a", "#03875a"

PANELS = {
    "Position (figure 2)": {"previous": FIRST, "next": SECOND, "self": THIRD},
    "Token types (figure 2)": {"first": FIRST, "separator": SECOND, "punctuation": THIRD},
    "Entropy, nats (figure 4)": {"entropy": FIRST, "entropy_first": SECOND},
}


def draw(tables: dict[str, hc.HeadTable], path: Path) -> None:
    """One row a model, one panel a figure."""
    rows = len(tables)
    figure, axes = plt.subplots(rows, len(PANELS), figsize=(11, 3.1 * rows), squeeze=False)
    for row, (name, table) in zip(axes, tables.items(), strict=True):
        for panel, (title, columns) in zip(row, PANELS.items(), strict=True):
            _panel(panel, table, columns)
            panel.set_title(f"{name}: {title}", fontsize=9, loc="left", color=INK)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _panel(panel: Axes, table: hc.HeadTable, columns: dict[str, str]) -> None:
    for place, (column, colour) in enumerate(columns.items()):
        values = by_layer(table, column)
        layers = np.arange(len(values))
        shift = 0.12 * (place - (len(columns) - 1) / 2)
        scattered = np.repeat(layers, values.shape[1]) + shift
        panel.scatter(scattered, values.ravel(), s=7, color=colour, alpha=0.45, linewidths=0)
        panel.plot(layers, values.mean(1), color=colour, linewidth=1.4, label=column)
    if "entropy" in columns:
        uniform = float(table.frame["entropy_uniform"].iloc[0])
        panel.axhline(uniform, color=INK, linewidth=0.8, linestyle=":")
        panel.text(0, uniform, "uniform", fontsize=7, va="bottom", color=INK)
    panel.legend(fontsize=7, frameon=False)
    panel.set_xlabel("layer", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
