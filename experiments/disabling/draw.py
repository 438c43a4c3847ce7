"""Heat maps of what disabling gains, from the JSON alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from headcount.heads import parse_head

INK = "#333333"


def draw(told: dict[str, Any], path: Path) -> None:
    """One row a mode and one column a task: heads on the left, whole layers on the right edge."""
    modes, tasks = told["config"]["modes"], told["tasks"]
    shape = {"figsize": (3.1 * len(tasks), 2.5 * len(modes)), "squeeze": False}
    figure, axes = plt.subplots(len(modes), len(tasks), **shape)
    for row, mode in zip(axes, modes, strict=True):
        for panel, (task, found) in zip(row, tasks.items(), strict=True):
            _panel(panel, found, mode)
            mark = ", too small" if found[f"head {mode}"]["too small"] else ""
            title = f"{task}, {mode} ({found['metric']} {found['baseline']:.3f}{mark})"
            panel.set_title(title, fontsize=8, loc="left", color=INK)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _panel(panel: Axes, found: dict[str, Any], mode: str) -> None:
    grid = _grid(found[f"head {mode}"]["gains"])
    layers = np.array(list(found[f"layer {mode}"]["gains"].values()))
    gap = np.full(len(layers), np.nan)
    points = 100 * np.column_stack([grid, gap, layers])
    reach = max(1.0, float(np.nanmax(np.abs(100 * grid))))
    drawn = panel.imshow(points, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto")
    panel.set_xticks(
        [0, grid.shape[1] - 1, grid.shape[1] + 1], ["0", str(grid.shape[1] - 1), "all"]
    )
    panel.set_ylabel("layer", fontsize=7)
    panel.tick_params(labelsize=7)
    bar = panel.figure.colorbar(drawn, ax=panel)
    bar.set_label("points gained", fontsize=7)
    bar.ax.tick_params(labelsize=6)


def _grid(gains: dict[str, float]) -> np.ndarray:
    heads = {parse_head(name): gain for name, gain in gains.items()}
    grid = np.full((1 + max(h.layer for h in heads), 1 + max(h.index for h in heads)), np.nan)
    for head, gain in heads.items():
        grid[head.layer, head.index] = gain
    return grid
