"""p values corrected for many tests; NaN stays NaN and does not count as a test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.inputs import read_choice
from headcount.stats.resolution import CORRECTIONS, Correction
from headcount.stats.results import Counts, Floats

__all__ = ["adjust", "benjamini_hochberg", "holm"]


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
    return _in_order(p, axis, _holm_sorted)


def benjamini_hochberg(p: npt.ArrayLike, axis: int | None = None) -> Floats:
    """Benjamini and Hochberg's adjusted p values: the share of false claims stays below the level.

    Benjamini & Hochberg 1995. Over all tests given, or along one axis.

    >>> benjamini_hochberg([0.01, 0.04, np.nan, 0.03])
    array([0.03, 0.04,  nan, 0.04])
    """
    return _in_order(p, axis, _bh_sorted)


def _holm_sorted(p: Floats, tests: Counts) -> Floats:
    """Step down: each p times the tests left, never below the one before."""
    left = tests - np.arange(p.shape[-1])
    return np.maximum.accumulate(p * np.maximum(left, 0), axis=-1)


def _bh_sorted(p: Floats, tests: Counts) -> Floats:
    """Step up: each p times tests / rank, never above the one after (`fmin` passes over NaN)."""
    scaled = p * tests / np.arange(1, p.shape[-1] + 1)
    return np.fmin.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]


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
