"""Uncertainty: intervals, paired tests, corrections and agreement; the sentence is the unit.

Every interval or test takes one row of *sufficient statistics* per sentence, e.g. (hits, arcs), and
a function of their sum, e.g. `ratio`. Heads are further axes, tested together:
``[sentence, head, statistic]``.

>>> import numpy as np
>>> hits_and_arcs = np.array([[3, 4], [2, 5], [4, 4], [1, 3], [2, 2], [3, 6]])
>>> result = bootstrap_interval(hits_and_arcs, ratio)
>>> [round(float(number), 2) for number in result]
[0.62, 0.45, 0.86]
"""

from headcount.stats.agreement import (
    Agreement,
    agreement_matrix,
    rank_agreement,
    sentence_agreement,
)
from headcount.stats.bootstrap import bootstrap_difference, bootstrap_interval
from headcount.stats.corrections import (
    adjust,
    benjamini_hochberg,
    check_resolution,
    detectable_effect,
    holm,
)
from headcount.stats.intervals import mean_interval, ratio_interval, wilson_interval
from headcount.stats.paired import (
    mcnemar,
    minimum_detectable_difference,
    ratio_test,
    sign_flip,
    sign_flip_counts,
    sign_flip_scores,
)
from headcount.stats.sample import Interval, PairedDifference, PairedTest, Statistic, bleu, ratio

__all__ = [
    "Agreement",
    "Interval",
    "PairedDifference",
    "PairedTest",
    "Statistic",
    "adjust",
    "agreement_matrix",
    "benjamini_hochberg",
    "bleu",
    "bootstrap_difference",
    "bootstrap_interval",
    "check_resolution",
    "detectable_effect",
    "holm",
    "mcnemar",
    "mean_interval",
    "minimum_detectable_difference",
    "rank_agreement",
    "ratio",
    "ratio_interval",
    "ratio_test",
    "sentence_agreement",
    "sign_flip",
    "sign_flip_counts",
    "sign_flip_scores",
    "wilson_interval",
]
