"""Shares of patterns by layer and task, from the JSON alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from headcount.patterns.kinds import PATTERNS

INK = "#333333"
COLOURS = dict(zip(PATTERNS, ("#12419b", "#a0572a", "#7d4f9e", "#03875a", "#b8bcc4"), strict=True))


def draw(shares: dict[str, Any], path: Path) -> None:
    """A column a task, base model above and classifier below; bars are layers."""
    figure, axes = plt.subplots(2, len(shares), figsize=(2.9 * len(shares), 4.6), squeeze=False)
    for column, (task, both) in zip(axes.T, shares.items(), strict=True):
        for panel, (which, found) in zip(column, both.items(), strict=True):
            below = np.zeros(len(found["layers"][PATTERNS[0]]))
            for name in PATTERNS:
                values = np.array(found["layers"][name])
                panel.bar(range(len(values)), values, bottom=below, color=COLOURS[name], label=name)
                below += values
            panel.set_title(f"{task}, {which}", fontsize=9, loc="left", color=INK)
            panel.tick_params(labelsize=7)
            panel.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("share of maps", fontsize=8)
    axes[1, 0].set_xlabel("layer", fontsize=8)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=5, fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
