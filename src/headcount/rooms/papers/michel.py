"""The best single head of every layer: Michel et al., NeurIPS 2019.

Tables 2 and 3 choose and judge a head on the same data, 5 and 6 of the appendix on other data.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pandas as pd

from headcount.importance import Sweep, ablation_costs
from headcount.records import Head

#: How the head was chosen: on the examples that it is judged by, or on a half that it is not.
CHOSEN = ("same examples", "other half")


def best_single_heads(sweep: Sweep, heads: Sequence[Head], *, seed: int = 0) -> pd.DataFrame:
    """Two rows a layer, from a sweep over the `others` of these heads, corrected over layers.

    The first row is the naive one: the best of many is better than it should be. In the second
    the head is chosen on a random half of the examples and judged on the other.
    """
    parts = [_judged(_cheapest(sweep, heads), sweep, CHOSEN[0], seed)]
    if len(sweep.baseline) > 1:
        count = len(sweep.baseline)
        first = sorted(random.Random(seed).sample(range(count), count // 2))
        choosing, judging = sweep.part(first), sweep.part(sorted({*range(count)} - {*first}))
        parts.append(_judged(_cheapest(choosing, heads), judging, CHOSEN[1], seed))
    return pd.concat(parts, ignore_index=True)


def _cheapest(sweep: Sweep, heads: Sequence[Head]) -> dict[Head, int]:
    """Of every layer the head that costs least alone, and which intervention that is."""
    costs = np.nan_to_num(np.array(sweep.costs()), nan=np.inf)
    layers: dict[tuple[str, int], list[int]] = {}
    for place, head in enumerate(heads):
        layers.setdefault((head.stack, head.layer), []).append(place)
    best = [min(places, key=costs.__getitem__) for places in layers.values()]
    return {heads[place]: place for place in best}


def _judged(best: dict[Head, int], judging: Sweep, chosen: str, seed: int) -> pd.DataFrame:
    costs = ablation_costs(judging.some(list(best.values())), seed=seed)
    frame = pd.DataFrame(list(best), columns=["stack", "layer", "head"])
    figures = {"cost": costs.value, "low": costs.low, "high": costs.high}
    figures |= {"p": costs.p, "p_adjusted": costs.p_adjusted}
    return frame.assign(chosen_on=chosen, n=len(judging.baseline), **figures)
