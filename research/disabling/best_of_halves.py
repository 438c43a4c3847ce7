"""What disabling the best head or layer gains, when it is chosen on other examples.

Kovaleva et al., EMNLP 2019, section 4.5 and figures 8 and 9: the best of many is chosen and judged
on the same dev set there. Here it is chosen on a random half and judged on the other.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.importance.ablation import ablation_costs
from headcount.importance.sweeps.sweeping import Sweep

from .detectable import detectable_effect, minimum_detectable_difference

__all__ = ["best_of_halves", "detectable_gain"]

#: Fewer examples than this cannot be halved and compared.
_LEAST = 4
_LEVEL = 0.05


def best_of_halves(found: Sweep, *, splits: int = 5, seed: int = 0) -> pd.DataFrame:
    """One row a split: the intervention that gains most on one half, and its gain on the other.

    A gain is a cost below 0: less loss, or more of the task's metric. `gain_chosen` is the gain
    on the half that chose, which flatters; `gain` with `low`, `high` and `p` is that of the other
    half; `detectable` is the smallest gain that this half could have shown.
    """
    count = len(found.baseline)
    if count < _LEAST or splits < 1:
        raise UsageError(
            f"{count} examples and {splits} splits were given; halves to choose and to judge by "
            f"need {_LEAST} examples and 1 split or more."
        )
    return pd.DataFrame([_row(found, split, seed) for split in range(splits)])


def detectable_gain(found: Sweep, *, tests: int = 1, seed: int = 0) -> np.ndarray:
    """The smallest difference that each intervention of a sweep could have shown, 80% of the time.

    By McNemar's test for accuracy, from the share of examples that change, and never less than
    the few changes, all one way, that its exact form asks for; else from the width of the paired
    interval, NaN where nothing moved. `tests` shares the level among so many.
    """
    if found.baseline.metric.test == "mcnemar":
        return _by_changes(found, tests)
    costs = ablation_costs(found, seed=seed)
    known = np.isfinite(costs.low) & np.isfinite(costs.high) & (costs.high > costs.low)
    low, high = (np.where(known, ends, 0.0) for ends in (costs.low, costs.high))
    return np.where(known, detectable_effect(low, high, tests=tests), np.nan)


def _by_changes(found: Sweep, tests: int) -> np.ndarray:
    base = found.baseline.scores
    changed = [float(np.mean(one.scores != base)) for one in found.outcomes]
    sought = np.atleast_1d(minimum_detectable_difference(len(base), changed, tests=tests))
    fewest = math.ceil(math.log2(2 * tests / _LEVEL)) / len(base)
    return np.fmax(sought, fewest)


def _row(found: Sweep, split: int, seed: int) -> dict[str, Any]:
    choosing, judging = _halves(found, seed + split)
    costs = np.nan_to_num(np.array(choosing.costs()), nan=np.inf)
    best = int(np.argmin(costs))
    judged = judging.some([best])
    cost = ablation_costs(judged, seed=seed)
    return {
        "split": split,
        "chosen": found.interventions[best].name,
        "n": len(judging.baseline),
        "gain_chosen": -float(costs[best]),
        "gain": -float(cost.value[0]),
        "low": -float(cost.high[0]),
        "high": -float(cost.low[0]),
        "p": float(cost.p[0]),
        "detectable": float(detectable_gain(judged, seed=seed)[0]),
    }


def _halves(found: Sweep, seed: int) -> tuple[Sweep, Sweep]:
    count = len(found.baseline)
    first = set(random.Random(seed).sample(range(count), count // 2))
    rest = [number for number in range(count) if number not in first]
    return found.part(sorted(first)), found.part(rest)
