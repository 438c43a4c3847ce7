"""Uncertainty: intervals, paired tests, corrections and agreement; the sentence is the unit.

Every interval or test takes one row of *sufficient statistics* per sentence, e.g. (hits, arcs), and
a function of their sum, e.g. `ratio`. Heads are further axes, tested together:
``[sentence, head, statistic]``.

>>> import numpy as np
>>> from headcount.stats import bootstrap_interval, ratio
>>> hits_and_arcs = np.array([[3, 4], [2, 5], [4, 4], [1, 3], [2, 2], [3, 6]])
>>> result = bootstrap_interval(hits_and_arcs, ratio)
>>> [round(float(number), 2) for number in result]
[0.62, 0.45, 0.86]
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.stats.bootstrap import (
        bootstrap_difference,
        bootstrap_interval,
        mean_interval,
        quantiles,
        ratio_interval,
        wilson_interval,
    )
    from headcount.stats.corrections import (
        Alternative,
        Correction,
        adjust,
        benjamini_hochberg,
        check_resolution,
        holm,
    )
    from headcount.stats.paired import (
        mcnemar,
        paired_share_interval,
        ratio_test,
        sign_flip,
        sign_flip_scores,
    )
    from headcount.stats.sample import (
        DRAWS,
        Counts,
        Floats,
        Interval,
        PairedDifference,
        PairedTest,
        Statistic,
        bleu,
        ratio,
        read_choice,
        read_count,
        read_finite,
        read_seed,
        read_sentences,
        read_share,
        resample_weights,
    )

open_door(__name__)
