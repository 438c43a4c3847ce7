"""Reading what the statistics are given, or one sentence that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.results import Floats

__all__ = [
    "read_choice",
    "read_count",
    "read_finite",
    "read_pair",
    "read_seed",
    "read_sentences",
    "read_share",
    "read_statistics",
]


def read_finite(values: npt.ArrayLike, name: str) -> Floats:
    """An array of numbers in which every number is finite.

    >>> read_finite([1, 2], "differences")
    array([1., 2.])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatsError(f"The {name} cannot be read as an array of numbers: {error}.") from None
    wrong = int(np.count_nonzero(~np.isfinite(array)))
    if wrong:
        raise StatsError(
            f"The {name} hold {wrong:,} of {array.size:,} numbers that are NaN or infinite; "
            "leave those sentences or heads out first."
        )
    return array


def read_sentences(values: npt.ArrayLike, name: str) -> Floats:
    """Finite numbers with at least two rows, one a sentence."""
    array = read_finite(values, name)
    rows = len(array) if array.ndim else 0
    if rows == 0:
        raise StatsError(f"The {name} hold no sentences; give one row a sentence, at least 2.")
    if rows == 1:
        raise StatsError(
            f"The {name} hold one sentence, which says nothing about chance; give at least 2."
        )
    if array.size == 0:
        raise StatsError(f"The {name} have shape {array.shape}: there are no heads to look at.")
    return array


def read_statistics(values: npt.ArrayLike, name: str = "statistics") -> Floats:
    """Sufficient statistics ``[sentence, statistic]`` or ``[sentence, head..., statistic]``."""
    array = read_sentences(values, name)
    if array.ndim < 2:
        raise StatsError(
            f"The {name} have shape {array.shape}; give [sentence, statistic] or "
            "[sentence, head, statistic], e.g. hits and counts in the last axis."
        )
    return array


def read_pair(
    statistics: npt.ArrayLike, baseline: npt.ArrayLike, last_axis: bool = True
) -> tuple[Floats, Floats]:
    """Two systems on the same sentences; the second may be one for all heads of the first."""
    read = read_statistics if last_axis else read_sentences
    ours, theirs = read(statistics, "statistics"), read(baseline, "baseline")
    if len(ours) != len(theirs):
        raise StatsError(
            f"The two systems have {len(ours):,} and {len(theirs):,} sentences; "
            "a paired test needs the same sentences in the same order."
        )
    if theirs.ndim == 1 + last_axis:
        one_head = (1,) * (ours.ndim - theirs.ndim)
        theirs = theirs.reshape(theirs.shape[:1] + one_head + theirs.shape[1:])
    if theirs.shape != ours.shape and (
        theirs.ndim != ours.ndim
        or theirs.shape[ours.ndim - last_axis :] != ours.shape[ours.ndim - last_axis :]
        or any(size != 1 for size in theirs.shape[1 : ours.ndim - last_axis])
    ):
        raise StatsError(
            f"The systems have shapes {ours.shape} and {np.shape(baseline)}; give the baseline the "
            "same shape, or leave its head axes out to compare every head with one baseline."
        )
    return ours, theirs


def read_seed(seed: object) -> int:
    """A whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise StatsError(f"The seed is {seed!r}; give a whole number of 0 or more.")
    return int(seed)


def read_count(value: object, name: str, least: int = 1) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise StatsError(f"The number of {name} is {value!r}; give a whole number from {least} up.")
    return int(value)


def read_share(value: float, name: str) -> float:
    """A number strictly between 0 and 1."""
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise StatsError(f"The {name} is {value!r}; give a number between 0 and 1, e.g. 0.05.")
    return float(value)


def read_choice(value: str, name: str, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise StatsError(f"There is no {name} {value!r}; choose one of {', '.join(words)}.")
    return value
