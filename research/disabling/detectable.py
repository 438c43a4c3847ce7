"""The smallest difference that a paired comparison could have found, with the usual power."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from headcount.errors import StatsError
from headcount.stats import Floats, read_count, read_share
from headcount.stats.sample import read_finite


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


def minimum_detectable_difference(
    examples: int,
    discordant: npt.ArrayLike,
    *,
    tests: int = 1,
    level: float = 0.05,
    power: float = 0.8,
) -> Floats:
    """The smallest paired difference in accuracy that a two-sided test finds with the given power.

    Connor 1987, solved for the difference; `discordant` is the share of examples on which the two
    systems disagree, the level is shared among the tests. NaN where a difference in all of those
    would still be missed. A normal approximation: the exact test needs a little more.

    >>> minimum_detectable_difference(277, 0.1).round(3)
    np.float64(0.053)
    """
    share = read_finite(discordant, "shares of discordant examples")
    if np.any((share < 0) | (share > 1)):
        raise StatsError("A share of discordant examples lies outside 0 to 1.")
    n = read_count(examples, "examples", least=2)
    shared = read_share(level, "level") / read_count(tests, "tests")
    z, z_power = float(-ndtri(shared / 2)), float(ndtri(read_share(power, "power")))
    inside = n + z_power**2 - z**2
    if inside < 0:
        return np.full_like(share, np.nan)[()]
    found = np.sqrt(share) * (z * np.sqrt(n) + z_power * np.sqrt(inside)) / (n + z_power**2)
    return np.where(found <= share, found, np.nan)[()]
