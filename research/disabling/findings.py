"""What a sweep over heads and layers says: gains, best of halves, and what could have been seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.importance.ablation import ablation_costs
from headcount.importance.sweeps.sweeping import Sweep

from .best_of_halves import best_of_halves, detectable_gain

LEVEL = 0.05


def findings(found: Sweep, config: dict[str, Any]) -> dict[str, Any]:
    """One task in numbers, by mode and unit."""
    told: dict[str, Any] = {
        "metric": found.baseline.name,
        "baseline": round(found.baseline.value, 4),
        "examples": len(found.baseline),
    }
    for mode in config["modes"]:
        for unit in ("head", "layer"):
            part = found.some(_places(found, mode, unit))
            told[f"{unit} {mode}"] = _of_unit(
                part, config, config["largest_gain_of_the_paper"][unit]
            )
    return told


def _places(found: Sweep, mode: str, unit: str) -> list[int]:
    return [
        place
        for place, one in enumerate(found.interventions)
        if one.mode == mode and (len(one.heads) > 1) == (unit == "layer")
    ]


def _of_unit(part: Sweep, config: dict[str, Any], sought: float) -> dict[str, Any]:
    costs = ablation_costs(part, seed=config["seed"])
    gains = -costs.value
    halves = best_of_halves(part, splits=config["splits"], seed=config["seed"])
    seen = detectable_gain(part, tests=len(part), seed=config["seed"])
    on_half = _median(halves["detectable"].to_numpy())
    sure = costs.p_adjusted < LEVEL
    names = [_name(one) for one in part.interventions]
    return {
        "gains": dict(zip(names, gains.round(5).tolist(), strict=True)),
        "mean gain": round(float(np.nanmean(gains)), 5),
        "better without": int((gains > 0).sum()),
        "surely better without": int((sure & (gains > 0)).sum()),
        "surely worse without": int((sure & (gains < 0)).sum()),
        "best on all of dev": _best(part, gains, costs),
        "best of halves": halves.round(5).to_dict("records"),
        "mean gain on the half that chose": round(float(halves["gain_chosen"].mean()), 5),
        "mean gain on the other half": round(float(halves["gain"].mean()), 5),
        "range on the other half": [round(float(end(halves["gain"])), 5) for end in (min, max)],
        "detectable on the other half": on_half,
        "detectable on all of dev, corrected": _median(seen),
        "sought": sought,
        "too small": not on_half <= sought,
    }  # fmt: skip


def _best(part: Sweep, gains: np.ndarray, costs: Any) -> dict[str, Any]:
    """The naive figure: chosen and judged on the same examples."""
    best = int(np.nanargmax(gains))
    return {
        "name": _name(part.interventions[best]),
        "gain": round(float(gains[best]), 5),
        "p_adjusted": round(float(costs.p_adjusted[best]), 5),
    }


def _median(values: np.ndarray) -> float:
    """The middle of what is known; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return round(float(np.median(known)), 5) if len(known) else float("nan")


def _name(one: Any) -> str:
    return str(one.name).removesuffix(f" {one.mode}")
