"""McNemar's exact test of paired accuracies, and the smallest difference such a test can find."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtri

from headcount.errors import StatsError
from headcount.stats.corrections import adjust
from headcount.stats.inputs import read_choice, read_count, read_finite, read_pair, read_share
from headcount.stats.resolution import ALTERNATIVES, Alternative, Correction, check_resolution
from headcount.stats.results import Counts, Floats, PairedTest

__all__ = ["mcnemar", "minimum_detectable_difference"]


def mcnemar(
    correct: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    level: float = 0.05,
) -> PairedTest:
    """Whether two accuracies differ, from outcomes ``[example, head...]`` right (1) or wrong (0).

    McNemar 1947, in its exact form: the binomial test of the examples on which the two disagree.

    >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1]).p
    np.float64(0.03125)
    """
    ours, theirs = read_pair(_right_or_wrong(correct), _right_or_wrong(baseline), last_axis=False)
    read_choice(alternative, "alternative", ALTERNATIVES)
    wins = np.count_nonzero(ours > theirs, axis=0)
    losses = np.count_nonzero(ours < theirs, axis=0)
    check_resolution(
        tests=max(1, np.size(wins)), sentences=len(ours), level=level, method=correction,
        alternative=alternative,
    )  # fmt: skip
    p = _binomial_p(np.asarray(wins), np.asarray(losses), alternative)
    value = (wins - losses) / len(ours)
    return PairedTest(np.asarray(value)[()], p[()], adjust(p, correction)[()])


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


def _binomial_p(wins: Counts, losses: Counts, alternative: Alternative) -> Floats:
    """The binomial test at 1/2, where both tails together are twice the smaller."""
    trials = wins + losses
    at_most = {
        "two-sided": lambda: 2 * bdtr(np.minimum(wins, losses), trials, 0.5),
        "greater": lambda: bdtr(losses, trials, 0.5),
        "less": lambda: bdtr(wins, trials, 0.5),
    }
    return np.minimum(at_most[alternative](), 1.0)


def _right_or_wrong(values: npt.ArrayLike) -> Floats:
    array = read_finite(values, "outcomes")
    if not np.all((array == 0) | (array == 1)):
        raise StatsError(
            "An outcome is neither 0 (wrong) nor 1 (right); McNemar's test takes these."
        )
    return array
