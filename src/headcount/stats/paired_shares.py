"""An interval for the difference of two paired shares that stays honest where nothing differs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from headcount.stats.inputs import read_pair, read_share
from headcount.stats.results import Interval

__all__ = ["paired_share_interval"]


def paired_share_interval(
    correct: npt.ArrayLike, baseline: npt.ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """The difference of two accuracies, from outcomes ``[example, head...]`` right or wrong.

    Bonett & Price 2012 (adjusted Wald): one example is added to each kind of disagreement. The
    bootstrap would be sure of no difference wherever no example differs, however few there are.

    >>> found = paired_share_interval(np.ones(200), np.ones(200), confidence=0.9)
    >>> [round(float(number), 4) for number in found]
    [0.0, -0.0115, 0.0115]
    """
    ours, theirs = read_pair(correct, baseline, last_axis=False)
    n = len(ours)
    better = (np.count_nonzero(ours > theirs, axis=0) + 1) / (n + 2)
    worse = (np.count_nonzero(ours < theirs, axis=0) + 1) / (n + 2)
    z = float(ndtri((1 + read_share(confidence, "confidence")) / 2))
    middle = better - worse
    width = z * np.sqrt((better + worse - middle**2) / (n + 2))
    value = np.mean(ours - theirs, axis=0)
    low, high = np.maximum(middle - width, -1.0), np.minimum(middle + width, 1.0)
    return Interval(np.asarray(value)[()], np.asarray(low)[()], np.asarray(high)[()])
