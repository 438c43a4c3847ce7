"""`python -m experiments.gates.draw`: BLEU over heads left, where they are left, what they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headcount as hc

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"
INK, TEAL, RUST = "#26303c", "#0f7b7b", "#b4552d"


def main() -> None:
    plt.rcParams["svg.hashsalt"] = "headcount"
    told = json.loads((RESULTS / "pruning-gates.json").read_text())
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), width_ratios=[3, 2])
    _curve(axes[0], told["curve"]["runs"])
    _layers(axes[1], told["curve"]["runs"])
    figure.tight_layout()
    figure.savefig(RESULTS / "pruning-gates.svg", metadata={"Date": None})
    left = json.loads((RESULTS / "pruning-survivors.json").read_text())["models"]
    hc.plot.functions_left(_functions(left), path=RESULTS / "pruning-survivors.svg")


def _functions(models: dict[str, Any]) -> pd.DataFrame:
    """Heads by function, one row a model and function; a head with several counts in each."""
    rows = []
    for name, one in models.items():
        counts = {**one["counts"], "other": one["heads"] - one["with a role"]}
        rows += [(name, "enc", what, count, one["heads"]) for what, count in counts.items()]
    return pd.DataFrame(rows, columns=["set", "stack", "function", "heads", "left"])


def _curve(axis: Any, runs: dict[str, Any]) -> None:
    rows = sorted((run["left"]["enc"], run) for name, run in runs.items() if name.startswith("enc"))
    left = [*(count for count, _ in rows), 48]
    for part, colour in (("dev", TEAL), ("test", RUST)):
        told = [*(run[part] for _, run in rows), runs["base"][part]]
        value = np.array([one["bleu"] for one in told])
        away = [value - [one["low"] for one in told], [one["high"] for one in told] - value]
        axis.errorbar(left, value, yerr=away, color=colour, marker="o", capsize=2, label=part)
        broken = [one["untouched"] for one in told[:-1]]
        axis.plot(left[:-1], broken, color=colour, ls=":", marker="x", label=f"{part}, not healed")
    axis.set_xscale("log", base=2)
    axis.set_xticks(left, [str(count) for count in left])
    axis.set_xlabel("encoder heads left of 48")
    axis.set_ylabel("BLEU, 95% interval")
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)


def _layers(axis: Any, runs: dict[str, Any]) -> None:
    names = [name for name in ("all-48", "all-28") if name in runs]
    stacks = ("enc", "dec", "cross")
    grid = np.array(
        [
            [runs[name]["layers"].get(f"{s}.{layer}", 0) for layer in range(6)]
            for name in names
            for s in stacks
        ]
    )
    axis.imshow(grid, cmap="GnBu", vmin=0, vmax=8, aspect="auto")
    for (row, layer), count in np.ndenumerate(grid):
        axis.text(layer, row, str(count), ha="center", va="center", color=INK, fontsize=9)
    axis.set_yticks(
        range(len(grid)), [f"{name.split('-')[1]} left: {s}" for name in names for s in stacks]
    )
    axis.set_xlabel("layer")
    axis.set_title("heads left of 8, all stacks gated together", fontsize=10)


if __name__ == "__main__":
    main()
