"""The best single head of every layer: how well it does when it is the only one left.

Michel et al., NeurIPS 2019, Tables 2 and 3 (head chosen and judged on the same data) and Tables 5
and 6 of their appendix (chosen on other data).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount.heads import Head
from headcount.importance.costs import Costs, costs_of
from headcount.sweeps import Sweep

__all__ = ["best_single_heads"]

#: How the head was chosen: on the examples that it is judged by, or on a half that it is not.
CHOSEN = ("same examples", "other half")


def best_single_heads(found: Sweep, heads: Sequence[Head], *, seed: int = 0) -> pd.DataFrame:
    """Two rows a layer, from a sweep over the `others` of these heads, corrected over layers.

    The first row is the naive one: the best of many is better than it should be. In the second
    the head is chosen on a random half of the examples and judged on the other.
    """
    parts = [_judged(_cheapest(found, heads), found, CHOSEN[0], seed)]
    if len(found.baseline) > 1:
        choosing, judging = _halves(found, seed)
        parts.append(_judged(_cheapest(choosing, heads), judging, CHOSEN[1], seed))
    return pd.concat(parts, ignore_index=True)


def _halves(found: Sweep, seed: int) -> tuple[Sweep, Sweep]:
    count = len(found.baseline)
    first = sorted(random.Random(seed).sample(range(count), count // 2))
    rest = [number for number in range(count) if number not in set(first)]
    return found.part(first), found.part(rest)


def _cheapest(found: Sweep, heads: Sequence[Head]) -> dict[Head, int]:
    """Of every layer the head that costs least alone, and which intervention that is."""
    costs = np.nan_to_num(np.array(found.costs()), nan=np.inf)
    layers: dict[tuple[str, int], list[int]] = {}
    for place, head in enumerate(heads):
        layers.setdefault((head.stack, head.layer), []).append(place)
    best = [min(places, key=costs.__getitem__) for places in layers.values()]
    return {heads[place]: place for place in best}


def _judged(best: dict[Head, int], judging: Sweep, chosen: str, seed: int) -> pd.DataFrame:
    costs = costs_of(judging.some(list(best.values())), seed=seed)
    rows = [_row(head, chosen, judging, costs, place) for place, head in enumerate(best)]
    return pd.DataFrame(rows)


def _row(head: Head, chosen: str, judging: Sweep, costs: Costs, place: int) -> dict[str, Any]:
    return {
        "stack": head.stack,
        "layer": head.layer,
        "head": head.index,
        "chosen_on": chosen,
        "n": len(judging.baseline),
        "cost": float(costs.value[place]),
        "low": float(costs.low[place]),
        "high": float(costs.high[place]),
        "p": float(costs.p[place]),
        "p_adjusted": float(costs.p_adjusted[place]),
    }
