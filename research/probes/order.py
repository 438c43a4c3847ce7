"""Clark et al.'s order of probes (Table 3), step by step: is each better than the one before?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from headcount.stats import adjust, bootstrap_difference, mean_interval

#: The order of Table 3: UAS 26, 30, 58, 61 and 77 on the Penn Treebank with BERT-base.
ORDER = ("right-branching", "random-init", "distances", "attention", "words")


def steps_of_the_order(hits: dict[tuple[str, int], np.ndarray]) -> list[dict[str, Any]]:
    """Paired differences of the means over seeds, over test sentences, corrected for the steps."""
    means = {
        kind: np.mean([found for (name, _), found in hits.items() if name == kind], axis=0)
        for kind in ORDER
    }
    found = [bootstrap_difference(means[upper], means[lower]) for lower, upper in pairwise(ORDER)]
    p = adjust([float(one.p) for one in found], "holm")
    return [
        {
            "lower": lower,
            "upper": upper,
            "difference": round(float(one.value), 4),
            "low": round(float(one.low), 4),
            "high": round(float(one.high), 4),
            "p_adjusted": float(chance),
            "confirmed": bool(one.low > 0 and chance < 0.05),
        }
        for (lower, upper), one, chance in zip(pairwise(ORDER), found, p, strict=True)
    ]


def leads_of_the_structural(arcs: dict[tuple[str, int], np.ndarray]) -> list[dict[str, Any]]:
    """UUAS of the structural probe minus that of each other kind, on the same sentences.

    `low` and `high` hold what sentences and what seeds leave open: the bootstrap over sentences of
    the mean over seeds, and Student's interval over seeds, half-widths added as squares.
    """
    kinds = dict.fromkeys(kind for kind, _ in arcs if kind != "structural")
    seeds = [seed for kind, seed in arcs if kind == "structural"]
    told = []
    for kind in kinds if seeds else ():
        ours, theirs = (
            np.stack([arcs[name, seed] for seed in seeds]) for name in ("structural", kind)
        )
        found = bootstrap_difference(ours.mean(0), theirs.mean(0))
        each = (ours[..., 0].sum(1) - theirs[..., 0].sum(1)) / ours[..., 1].sum(1)
        _, low, high = mean_interval(each.sum(), each @ each, len(each))
        value, over_seeds = float(found.value), float(high - low) / 2
        wide = float(np.hypot((found.high - found.low) / 2, over_seeds))
        told.append(
            {
                "against": kind,
                "lead": round(value, 4),
                "low": round(value - wide, 4),
                "high": round(value + wide, 4),
                "over_sentences": [round(float(found.low), 4), round(float(found.high), 4)],
                "over_seeds": round(over_seeds, 4),
                "by_seed": [round(float(one), 4) for one in each],
            }
        )
    return told
