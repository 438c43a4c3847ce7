"""Draw the README's picture: the bundled translator's 144 heads in four columns of the survey.

`python scripts/picture.py` writes docs/images/translator.svg.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import headcount as hc
from headcount.bundle import sample

OUT = Path(__file__).parent.parent / "docs" / "images" / "translator.svg"
COLUMNS = ("confidence", "entropy", "previous", "separator")
NAMES = {"enc": "encoder", "dec": "decoder", "cross": "cross"}
INK, PAPER = "#333333", "#f4f1ea"


def grid(table: hc.HeadTable, stack: str, column: str) -> np.ndarray:
    """Values `[layer, head]` of one stack."""
    values = table.frame.loc[stack, column]
    return values.to_numpy().reshape(values.index.get_level_values("layer").max() + 1, -1)


def draw(panel: Axes, values: np.ndarray, high: float) -> None:
    """One stack and column; what was not measured is hatched, never blank or zero."""
    panel.set_facecolor(PAPER)
    panel.pcolormesh(values, cmap="YlGnBu", vmin=0, vmax=high, edgecolors="white", linewidth=1)
    if np.isnan(values).all():
        whole = plt.Rectangle((0, 0), *values.shape[::-1], hatch="///", fill=False, color="#bbbbbb")
        panel.add_patch(whole)
        panel.text(4, 3, "not measured", ha="center", va="center", fontsize=7, color=INK)
    panel.invert_yaxis()
    panel.set_aspect("equal")
    panel.tick_params(length=0, labelsize=6, colors=INK)
    panel.set_xticks(np.arange(8) + 0.5, range(8))
    panel.set_yticks(np.arange(6) + 0.5, range(6))
    for side in panel.spines.values():
        side.set_visible(False)


def main() -> None:
    table = hc.survey(hc.load("translator", device="cpu"), sample.pairs())
    figure, panels = plt.subplots(3, 4, figsize=(9, 5.4))
    for row, stack in zip(panels, NAMES, strict=True):
        for panel, column in zip(row, COLUMNS, strict=True):
            high = float(np.nanmax(table.frame[column]))
            draw(panel, grid(table, stack, column), high)
            if stack == "enc":
                title = f"{table.columns[column].title.lower()} (0 to {high:.1f})"
                panel.set_title(title, fontsize=9, color=INK, loc="left")
        row[0].set_ylabel(f"{NAMES[stack]}\nlayer", fontsize=8, color=INK)
    for panel in panels[-1]:
        panel.set_xlabel("head", fontsize=8, color=INK)
    figure.tight_layout()
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
