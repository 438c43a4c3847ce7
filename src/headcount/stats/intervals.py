"""Intervals in closed form: from streaming sums over sentences, and Wilson's for single trials."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtri, stdtrit

from headcount.errors import StatsError
from headcount.stats.sample import Floats, Interval, read_finite, read_share

# --- Intervals in closed form -------------------------------------------------------------------

Bounds = tuple[float, float] | None


def ratio_interval(
    x: npt.ArrayLike,
    n: npt.ArrayLike,
    xx: npt.ArrayLike,
    xn: npt.ArrayLike,
    nn: npt.ArrayLike,
    sentences: npt.ArrayLike,
    confidence: float = 0.95,
    bounds: Bounds = None,
) -> Interval:
    """A ratio of sums, Σx / Σn, with its interval from Σx², Σxn, Σn² over sentences.

    Delta method with Student's t (Cochran 1977, section 2.11); NaN ends below 2 sentences, NaN
    value where Σn is 0. Sums of two shards add up. `bounds` cuts the ends, e.g. (0, 1) for a share.

    >>> x, n = np.array([3.0, 2, 4, 1]), np.array([4.0, 5, 4, 3])
    >>> found = ratio_interval(x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x))
    >>> [round(float(number), 3) for number in found]
    [0.625, 0.136, 1.114]
    """
    total, count, xx, xn, nn, rows = _sums(x=x, n=n, xx=xx, xn=xn, nn=nn, sentences=sentences)
    _not_negative(n=count, xx=xx, nn=nn, sentences=rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(count > 0, total / count, np.nan)
        squares = np.maximum(xx - 2 * value * xn + value**2 * nn, 0)
        error = np.sqrt(squares * rows / (rows - 1)) / count
    return _student(value, error, rows, confidence, bounds)


def mean_interval(
    v: npt.ArrayLike,
    vv: npt.ArrayLike,
    sentences: npt.ArrayLike,
    confidence: float = 0.95,
    bounds: Bounds = None,
) -> Interval:
    """A mean over sentences with its interval, from Σv and Σv².

    Student's t interval; NaN ends below 2 sentences, NaN value with none.

    >>> [round(float(number), 3) for number in mean_interval(6.0, 14.0, 3)]
    [2.0, -0.484, 4.484]
    """
    total, squares, rows = _sums(v=v, vv=vv, sentences=sentences)
    _not_negative(vv=squares, sentences=rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(rows > 0, total / rows, np.nan)
        variance = np.maximum(squares - total * value, 0) / (rows - 1)
        error = np.sqrt(variance / rows)
    return _student(value, error, rows, confidence, bounds)


def wilson_interval(hits: npt.ArrayLike, n: npt.ArrayLike, confidence: float = 0.95) -> Interval:
    """A share of independent trials with Wilson's interval; NaN where there were none.

    Wilson 1927. Arcs of one sentence are not independent: prefer a sentence-level interval.

    >>> [round(float(number), 3) for number in wilson_interval(8, 10)]
    [0.8, 0.49, 0.943]
    """
    k, trials = _sums(hits=hits, n=n)
    _not_negative(hits=k, n=trials)
    if np.any(k > trials):
        raise StatsError("There are more hits than trials; hits must lie between 0 and n.")
    z = float(ndtri(0.5 + read_share(confidence, "confidence") / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = k / trials
        shrunk = 1 + z**2 / trials
        centre = (value + z**2 / (2 * trials)) / shrunk
        half = z / shrunk * np.sqrt(value * (1 - value) / trials + z**2 / (4 * trials**2))
    return Interval(value[()], np.maximum(centre - half, 0), np.minimum(centre + half, 1))


def _sums(**sums: npt.ArrayLike) -> list[Floats]:
    """The sums as arrays of one shape."""
    arrays = [read_finite(values, f"sums {name}") for name, values in sums.items()]
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(
            f"{name} {array.shape}" for name, array in zip(sums, arrays, strict=True)
        )
        raise StatsError(
            f"The sums do not fit each other: {shapes}; give them one shape."
        ) from None


def _not_negative(**sums: Floats) -> None:
    for name, values in sums.items():
        if np.any(values < 0):
            raise StatsError(f"The sum {name} is {values.min():g} somewhere; it is never below 0.")


def _student(
    value: Floats, error: Floats, rows: Floats, confidence: float, bounds: Bounds
) -> Interval:
    """value ± t · error, with NaN ends where fewer than two sentences were seen."""
    half_tail = 0.5 + read_share(confidence, "confidence") / 2
    freedom = np.maximum(rows - 1, 1)
    if freedom.size and np.all(freedom == freedom.flat[0]):  # as for the heads of one layer
        freedom = freedom.flat[:1].reshape((1,) * freedom.ndim)
    width = np.where(rows >= 2, stdtrit(freedom, half_tail) * error, np.nan)
    low, high = bounds if bounds is not None else (-np.inf, np.inf)
    return Interval(value[()], np.clip(value - width, low, high), np.clip(value + width, low, high))


# --- The median with an interval that no shape of the distribution can upset --------------------


def median_interval(values: npt.ArrayLike, confidence: float = 0.95) -> Interval:
    """The median of values ``[value]``; the ends are two of the values themselves.

    Conover 1999, section 3.2: as many values lie below the median as heads fall in coin tosses.
    NaN ends where even the outermost values are too near, below 6 values at 95%.

    >>> [float(number) for number in median_interval([3, 1, 2, 5, 4, 6, 20])]
    [4.0, 1.0, 20.0]
    """
    ordered = np.sort(read_finite(values, "values").ravel())
    count = len(ordered)
    tail = (1 - read_share(confidence, "confidence")) / 2
    cut = int(np.sum(bdtr(np.arange(count), count, 0.5) <= tail)) if count else 0
    middle = np.asarray(np.median(ordered) if count else np.nan)[()]
    if not cut:
        return Interval(middle, np.asarray(np.nan)[()], np.asarray(np.nan)[()])
    return Interval(middle, ordered[cut - 1], ordered[count - cut])
