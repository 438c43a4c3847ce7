"""The smallest effect that a paired comparison could have found, read off its interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from headcount.stats.inputs import read_count, read_finite, read_share
from headcount.stats.results import Floats

__all__ = ["detectable_effect"]


def detectable_effect(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    tests: int = 1,
    level: float = 0.05,
    power: float = 0.8,
) -> Floats:
    """The true difference that a two-sided test finds with the given power, from an interval.

    Bloom 1995: (z at level/2 + z at power) standard errors; the error is half the interval's
    width over its own z, so any metric with a paired interval has one. The level is shared among
    the tests.

    >>> detectable_effect(-0.01, 0.03).round(4)
    np.float64(0.0286)
    """
    ends = read_finite(low, "lower ends"), read_finite(high, "upper ends")
    reach = ndtri(0.5 + read_share(confidence, "confidence") / 2)
    error = (ends[1] - ends[0]) / (2 * reach)
    shared = read_share(level, "level") / read_count(tests, "tests")
    needed = -ndtri(shared / 2) + ndtri(read_share(power, "power"))
    return np.asarray(error * needed)[()]
