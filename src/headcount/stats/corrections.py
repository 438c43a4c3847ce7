"""p values: the smallest that a test can give, and corrections for many tests.

Holm 1979; Benjamini & Hochberg 1995. NaN stays NaN and does not count as a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.sample import Counts, Floats, read_choice, read_count, read_share

# --- The smallest p a test can give -------------------------------------------------------------

Alternative = Literal["two-sided", "greater", "less"]
Correction = Literal["holm", "bh", "none"]
ALTERNATIVES = ("two-sided", "greater", "less")
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "no correction"}

# Decimal levels such as 0.05 are not exact in binary; a p that meets the level exactly must pass.
_SLACK = 1 + 1e-9


def check_resolution(
    *,
    tests: int,
    draws: int | None = None,
    sentences: int | None = None,
    level: float = 0.05,
    method: Correction = "holm",
    alternative: Alternative = "two-sided",
) -> float:
    """The smallest p possible; `StatsError` where even that could never count as significant.

    Random draws give no p below 1/(draws+1). Sentences that all agree give none below 2^-sentences,
    twice that when two-sided. A single head must get below level/tests, with Holm and with
    Benjamini-Hochberg: there several heads can pass together above it, but none could alone.

    >>> check_resolution(draws=1000, tests=144, level=0.01)
    Traceback (most recent call last):
    headcount.errors.StatsError: 1,000 draws give no p below 1/1001 = 0.000999, but Holm over 144
    tests at level 0.01 asks for p <= 0.01/144 = 6.94e-05; use at least 14,399 draws.
    """
    read_choice(method, "correction", CORRECTIONS)
    read_choice(alternative, "alternative", ALTERNATIVES)
    shared = 1 if method == "none" else read_count(tests, "tests")
    asked = f"{CORRECTIONS[method]} over {shared:,} tests" if shared > 1 else "one test"
    target = f"but {asked} at level {read_share(level, 'level'):g} asks for p <= "
    target += f"{level:g}/{shared} = {level / shared:.3g}" if shared > 1 else f"{level:g}"
    if sentences is not None:
        _check_sentences(read_count(sentences, "sentences"), level / shared, alternative, target)
    if draws is not None:
        _check_draws(read_count(draws, "draws"), level / shared, target)
    return max(
        0.0 if draws is None else 1 / (draws + 1),
        0.0 if sentences is None else floor(sentences, alternative),
    )


def floor(sentences: int, alternative: Alternative) -> float:
    """The smallest p of a paired test: all sentences on one side, as likely as any other signs.

    >>> floor(5, "greater"), floor(5, "two-sided")
    (0.03125, 0.0625)
    """
    return min(1.0, 2.0 ** ((alternative == "two-sided") - sentences))


def count_as_far(
    drawn: Floats, value: Floats, tolerance: Floats, alternative: Alternative
) -> Counts:
    """How many draws ``[draw, head]`` lie at least as far out as the value; NaN counts as far.

    >>> count_as_far(np.array([[-2.0], [1.0], [np.nan]]), np.array([1.5]), np.zeros(1), "two-sided")
    array([2])
    """
    if alternative == "two-sided":
        drawn, value = np.abs(drawn), np.abs(value)
    elif alternative == "less":
        drawn, value = -drawn, -value
    return np.asarray(np.count_nonzero(~(drawn < value - tolerance), axis=0))


def _check_draws(draws: int, wanted: float, target: str) -> None:
    if 1 / (draws + 1) > wanted * _SLACK:
        needed = math.ceil(1 / wanted / _SLACK) - 1
        raise StatsError(
            f"{draws:,} draws give no p below 1/{draws + 1} = {1 / (draws + 1):.3g}, {target}; "
            f"use at least {needed:,} draws."
        )


def _check_sentences(sentences: int, wanted: float, alternative: Alternative, target: str) -> None:
    smallest = floor(sentences, alternative)
    if smallest > wanted * _SLACK:
        sides = alternative == "two-sided"
        needed = math.ceil(-math.log2(wanted * _SLACK)) + sides
        raise StatsError(
            f"A {'two' if sides else 'one'}-sided paired test on {sentences} sentences gives no p "
            f"below 2^-{sentences - sides} = {smallest:.3g}, {target}; "
            f"use at least {needed} sentences."
        )


# --- p values corrected for many tests ----------------------------------------------------------


def adjust(p: npt.ArrayLike, method: Correction = "holm", axis: int | None = None) -> Floats:
    """Adjusted p values by the method's name: holm, bh or none.

    >>> adjust([0.01, 0.04], "none")
    array([0.01, 0.04])
    """
    read_choice(method, "correction", CORRECTIONS)
    if method == "holm":
        return holm(p, axis)
    return benjamini_hochberg(p, axis) if method == "bh" else _read_p(p)


def holm(p: npt.ArrayLike, axis: int | None = None) -> Floats:
    """Holm's adjusted p values: the chance of even one false claim stays below the level.

    Holm 1979. Over all tests given, or along one axis.

    >>> holm([0.01, 0.04, np.nan, 0.03])
    array([0.03, 0.06,  nan, 0.06])
    """

    def stepped_down(p: Floats, tests: Counts) -> Floats:
        """Each p times the tests left, never below the one before."""
        left = tests - np.arange(p.shape[-1])
        return np.maximum.accumulate(p * np.maximum(left, 0), axis=-1)

    return _in_order(p, axis, stepped_down)


def benjamini_hochberg(p: npt.ArrayLike, axis: int | None = None) -> Floats:
    """Benjamini and Hochberg's adjusted p values: the share of false claims stays below the level.

    Benjamini & Hochberg 1995. Over all tests given, or along one axis.

    >>> benjamini_hochberg([0.01, 0.04, np.nan, 0.03])
    array([0.03, 0.04,  nan, 0.04])
    """

    def stepped_up(p: Floats, tests: Counts) -> Floats:
        """Each p times tests / rank, never above the one after (`fmin` passes over NaN)."""
        scaled = p * tests / np.arange(1, p.shape[-1] + 1)
        return np.fmin.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]

    return _in_order(p, axis, stepped_up)


def _in_order(
    p: npt.ArrayLike, axis: int | None, step: Callable[[Floats, Counts], Floats]
) -> Floats:
    """Sort (NaN goes last), adjust, put back."""
    given = _read_p(p)
    lines = given.reshape(1, -1) if axis is None else np.moveaxis(given, axis, -1)
    order = np.argsort(lines, axis=-1, kind="stable")
    tests = np.count_nonzero(~np.isnan(lines), axis=-1, keepdims=True)
    steps = step(np.take_along_axis(lines, order, axis=-1), tests)
    adjusted = np.empty_like(lines)
    np.put_along_axis(adjusted, order, np.minimum(steps, 1.0), axis=-1)
    adjusted[np.isnan(lines)] = np.nan
    return adjusted.reshape(given.shape) if axis is None else np.moveaxis(adjusted, -1, axis)


def _read_p(p: npt.ArrayLike) -> Floats:
    values = np.array(p, dtype=np.float64)
    if np.any((values < 0) | (values > 1)):
        raise StatsError(
            "A p value lies outside 0 to 1; give p values, with NaN for tests not made."
        )
    return values
