"""chrF of translations from counts of character n-grams, sentence by sentence."""

from __future__ import annotations

from collections import Counter

import numpy as np
from sacrebleu.metrics import CHRF

from headcount.errors import StatsError
from headcount.stats.results import Floats
from headcount.tasks.metric import Metric

__all__ = ["ORDERS", "chrf", "chrf_counts", "chrf_metric"]

#: Character n-grams of length 1 to 6.
ORDERS = 6
_RECALL = 2.0  # recall weighs twice as much as precision


def chrf_metric() -> Metric:
    """chrF2 as sacreBLEU has it, with its signature.

    >>> chrf_metric().signature
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...'
    """
    judge = CHRF()
    judge.corpus_score(["a"], [["a"]])
    names = ("{}-grams", "reference {}-grams", "{}-gram matches")
    columns = tuple(name.format(n) for n in range(1, ORDERS + 1) for name in names)
    return Metric("chrf", columns, chrf, signature=judge.get_signature().format())


def chrf_counts(hypothesis: str, reference: str) -> list[float]:
    """For each order: n-grams of the output, of the reference, and their matches; spaces left out.

    Popović 2015, section 2.

    >>> chrf_counts("abc", "ab d")[:6]
    [3, 3, 2, 2, 2, 1]
    """
    ours, theirs = "".join(hypothesis.split()), "".join(reference.split())
    counts: list[float] = []
    for order in range(1, ORDERS + 1):
        mine, yours = _ngrams(ours, order), _ngrams(theirs, order)
        # An order that the reference is too short for is no mistake of the output.
        counts += [mine.total() if yours else 0, yours.total(), (mine & yours).total()]
    return counts


def chrf(sums: Floats) -> Floats:
    """chrF2, 0 to 100, of summed counts ``[..., 18]``.

    The F-score of mean precision and mean recall, over the orders that both sides have.

    >>> chrf(np.array(chrf_counts("abc", "ab d"), dtype=float)).round(2)
    np.float64(38.89)
    """
    if sums.shape[-1] != 3 * ORDERS:
        raise StatsError(f"chrF is made of {3 * ORDERS} statistics, not of {sums.shape[-1]}.")
    ours, theirs, matches = (sums[..., place::3] for place in range(3))
    there = (ours > 0) & (theirs > 0)
    orders = np.maximum(there.sum(axis=-1), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(there, matches / ours, 0.0).sum(axis=-1) / orders
        recall = np.where(there, matches / theirs, 0.0).sum(axis=-1) / orders
        score = 100 * (1 + _RECALL**2) * precision * recall / (_RECALL**2 * precision + recall)
    return np.where(precision + recall > 0, score, 0.0)[()]


def _ngrams(text: str, order: int) -> Counter[str]:
    return Counter(text[start : start + order] for start in range(len(text) - order + 1))
