"""`python -m research.patterns.sheets DIR --order N [--draw 2] [--part test]`: pictures.

A sheet shows nothing but the maps and their numbers on it; red marks at the margin are specials.
All maps stand 36 to a sheet, those of one part 24 and larger.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .store import Kept, read_maps

FOLDER = Path(__file__).parent / "looked_at"
#: The draws of maps: any head and text at random, and those where blocks are likely, the last of
#: them to train on alone.
DRAWS = {1: FOLDER, 2: FOLDER / "second", 3: FOLDER / "third"}
#: Rows and columns of a sheet of all maps, and of one part.
ALL, SOME = (6, 6), (4, 6)


def order(count: int, seed: int) -> list[int]:
    """The maps in the random order of one pass."""
    places = list(range(count))
    random.Random(seed).shuffle(places)
    return places


def order_of_part(folder: Path, part: str, seed: int) -> list[int]:
    """The maps of one part, test or dev, in such an order."""
    parts = pd.read_csv(folder / "maps.tsv", sep="\t", usecols=["part"])["part"]
    return [place for place in order(len(parts), seed) if parts[place] == part]


def sheets(maps: list[Kept], places: list[int], folder: Path, shape: tuple[int, int]) -> None:
    """All sheets of one pass."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, columns = shape
    for number, start in enumerate(range(0, len(places), rows * columns)):
        shown = places[start : start + rows * columns]
        figure, axes = plt.subplots(rows, columns, figsize=(15, 15 * rows / columns), dpi=100)
        for turn, panel in enumerate(axes.ravel()):
            panel.set_axis_off()
            if turn < len(shown):
                _picture(panel, maps[shown[turn]], turn + 1)
        figure.subplots_adjust(0.01, 0.01, 0.99, 0.98, wspace=0.06, hspace=0.12)
        figure.savefig(folder / f"sheet-{number:02}.png")
        plt.close(figure)


def _picture(panel: Axes, one: Kept, number: int) -> None:
    size = len(one.weights)
    top = max(float(np.quantile(one.weights, 0.99)), 1e-6)
    ink = np.sqrt(np.clip(one.weights / top, 0, 1))
    panel.imshow(ink, cmap="Blues", vmin=0, vmax=1, interpolation="antialiased")
    marks = np.flatnonzero(one.special)
    edge = -0.5 - 0.02 * size
    panel.plot(marks, np.full(len(marks), edge), "rv", markersize=4, clip_on=False)
    panel.plot(np.full(len(marks), edge), marks, "r>", markersize=4, clip_on=False)
    panel.plot(
        np.array([0, 1, 1, 0, 0]) * size - 0.5, np.array([0, 0, 1, 1, 0]) * size - 0.5, "k-", lw=0.5
    )
    panel.set_title(f"{number}", fontsize=9, pad=4, loc="left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--order", type=int, required=True, help="seed of the order: 1, 2, 3")
    parser.add_argument("--draw", choices=DRAWS, type=int, default=1, help="which draw of maps")
    parser.add_argument("--part", choices=["test", "dev"], help="these maps alone, larger")
    given = parser.parse_args()
    kept = DRAWS[given.draw]
    maps = read_maps(kept / "maps.npz")
    if given.part:
        places, shape = order_of_part(kept, given.part, given.order), SOME
    else:
        places, shape = order(len(maps), given.order), ALL
    sheets(maps, places, given.folder, shape)


if __name__ == "__main__":
    main()
