"""Voita et al.'s figures 7 to 10: quality over heads left, what they do and where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc

__all__ = ["draw"]

WHOLE, LAYER = 48, 8  # heads of a stack, and of one of its layers


def draw(results: Path, out: Path) -> None:
    """The encoder's curve, the functions along it, and what is left of all stacks."""
    runs = json.loads((results / "pruning-gates.json").read_text())["curve"]["runs"]
    curves = {part: _curve(runs, part) for part in ("dev", "test")}
    hc.plot.gated_quality(curves, unit="encoder heads", path=out / "pruning-gates.svg")
    left = _layers({name: runs[name] for name in ("base", "all-48", "all-28") if name in runs})
    hc.plot.layers_left(left, path=out / "pruning-layers.svg")
    hc.plot.stacks_left(_stacks(left), path=out / "pruning-stacks.svg")
    roles = json.loads((results / "pruning-frozen.json").read_text())["roles"]
    hc.plot.functions_left(_functions(roles), path=out / "pruning-survivors.svg")


def _curve(runs: dict[str, Any], part: str) -> pd.DataFrame:
    """BLEU of every set of encoder heads, healed and as the gates left it; the whole first."""
    rows = [(WHOLE, 0, False, *(runs["base"][part][key] for key in ("bleu", "low", "high")))]
    sets = [run for name, run in runs.items() if name.startswith("enc-")]
    for step, run in enumerate(sorted(sets, key=lambda run: -run["left"]["enc"]), 1):
        own, left = run[part], run["left"]["enc"]
        rows.append((left, step, True, own["bleu"], own["low"], own["high"]))
        rows.append((left, step, False, own["untouched"], np.nan, np.nan))
    frame = pd.DataFrame(rows, columns=["heads_left", "step", "healed", "value", "low", "high"])
    return frame.assign(order="gates", scope="enc", metric="BLEU")


def _layers(runs: dict[str, Any]) -> pd.DataFrame:
    """Heads left of every layer, a set a model; what is not told of is gone."""
    rows = [
        (str(sum(run["left"].values())), stack, layer, run["layers"].get(f"{stack}.{layer}", 0))
        for run in runs.values()
        for stack in ("enc", "dec", "cross")
        for layer in range(WHOLE // LAYER)
    ]
    frame = pd.DataFrame(rows, columns=["set", "stack", "layer", "heads"])
    return frame.assign(share=frame["heads"] / LAYER)


def _stacks(left: pd.DataFrame) -> pd.DataFrame:
    counts = left.groupby(["set", "stack"], sort=False)["heads"].sum().reset_index()
    return counts.assign(share=counts["heads"] / WHOLE)


def _functions(models: dict[str, Any]) -> pd.DataFrame:
    """Heads by function, most heads first; a head with several functions counts in each.

    All were trained for as many steps, and judged by the same rules.
    """
    rows = []
    for name, one in sorted(models.items(), key=lambda model: (-model[1]["heads"], model[0])):
        counts = {**one["counts"], "other": one["heads"] - one["with a role"]}
        rows += [(name, "enc", what, count, one["heads"]) for what, count in counts.items()]
    return pd.DataFrame(rows, columns=["set", "stack", "function", "heads", "left"])
