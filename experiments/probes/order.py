"""Clark et al.'s order of probes (Table 3), step by step: is each better than the one before?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from headcount.stats import adjust, bootstrap_difference

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
