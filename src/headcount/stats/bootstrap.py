"""Sentences resampled: bootstrap intervals, paired differences with p values, and the jackknife.

Efron & Tibshirani 1993; Koehn 2004 for paired differences; Tukey 1958 and Kott 2001 for the
jackknife over groups of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from headcount.errors import StatsError
from headcount.stats import sample as sampling
from headcount.stats.corrections import (
    Correction,
    adjust,
    check_resolution,
    count_as_far,
    floor,
)
from headcount.stats.sample import Floats, Interval, read_finite, read_share

Scored = TypeVar("Scored", sampling.Sample, sampling.Contrast)

# Replicates of all heads are held for their quantiles: at most this many numbers (128 MB) at once.
_HELD = 2**24


def bootstrap_interval(
    statistics: npt.ArrayLike,
    statistic: sampling.Statistic | None = sampling.ratio,
    *,
    redrawn: sampling.Redrawn | None = None,
    draws: int = sampling.DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> sampling.Interval:
    """A score's interval from resampled sentences, for ``[sentence, head..., statistic]``.

    Efron & Tibshirani 1993, chapter 13 (percentiles). A sentence whose statistics are all zero has
    not seen that head; a head seen in fewer than two sentences has NaN ends. Draws in which the
    score is undefined are left out. `redrawn` is a score that no sum gives, `statistic` then None.

    >>> hits_and_arcs = np.array([[3, 4], [2, 5], [4, 4], [1, 3]])
    >>> [round(float(number), 2) for number in bootstrap_interval(hits_and_arcs)]
    [0.62, 0.38, 0.88]
    """
    array = sampling.read_statistics(statistics)
    sampling.check_statistic(statistic, array)
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
    tail = (1 - sampling.read_share(confidence, "confidence")) / 2
    sample = sampling.Sample(_flat(array), statistic, redrawn)
    ends = [_ends(part, drawn, tail) for part, drawn in _resamples(sample, draws, seed)]
    return sampling.Interval(
        *_shaped(array.shape[1:-1], sample.value(), *np.concatenate(ends, axis=1))
    )


def bootstrap_difference(
    statistics: npt.ArrayLike,
    baseline: npt.ArrayLike,
    statistic: sampling.Statistic | None = sampling.ratio,
    *,
    redrawn: sampling.Redrawn | None = None,
    draws: int = sampling.DRAWS,
    confidence: float = 0.95,
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> sampling.PairedDifference:
    """A paired difference of two systems' scores, interval and p, all heads on the same resamples.

    Koehn 2004; p is the share of draws that lie as far from the difference as the difference from
    0, (b+1)/(draws+1) (Efron & Tibshirani 1993, section 16.4), and never below what sentences that
    all agree could give. The baseline is one system for all heads, or one per head. Draws too few
    for the corrected level are refused.

    >>> hits = np.random.default_rng(0).integers(0, 3, 40)
    >>> ours, theirs = np.stack([hits + 2, hits * 0 + 5], 1), np.stack([hits, hits * 0 + 5], 1)
    >>> found = bootstrap_difference(ours, theirs)
    >>> float(found.value.round(3)), float(found.p.round(6))
    (0.4, 5e-05)
    """
    ours, theirs = sampling.read_pair(statistics, baseline)
    for system in (ours, theirs):
        sampling.check_statistic(statistic, system)
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
    tail = (1 - sampling.read_share(confidence, "confidence")) / 2
    contrast = sampling.Contrast(
        *(sampling.Sample(_flat(one), statistic, redrawn) for one in (ours, theirs))
    )
    value = contrast.value()
    tests = int(np.count_nonzero(~np.isnan(value) & (contrast.seen() >= 2)))
    check_resolution(
        tests=max(tests, 1), draws=draws, sentences=len(ours), level=level, method=correction
    )
    found = [
        np.stack([*_ends(part, drawn, tail), _p_values(part, drawn)])
        for part, drawn in _resamples(contrast, draws, seed)
    ]
    low, high, p = np.concatenate(found, axis=1)
    return sampling.PairedDifference(
        *_shaped(ours.shape[1:-1], value, low, high, p, adjust(p, correction))
    )


def quantiles(ordered: sampling.Floats, shares: sampling.Floats) -> sampling.Floats:
    """Each head's own quantiles of sorted draws with NaN last: ``[draw, head]``, ``[share, head]``.

    >>> quantiles(np.array([[1.0], [2.0], [3.0], [np.nan]]), np.array([[0.0], [0.75], [1.0]]))[:, 0]
    array([1. , 2.5, 3. ])
    """
    defined = np.count_nonzero(~np.isnan(ordered), axis=0)
    place = shares * np.maximum(defined - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    start = np.take_along_axis(ordered, below, axis=0)
    return start + (place - below) * (np.take_along_axis(ordered, above, axis=0) - start)


def _ends(
    scored: sampling.Sample | sampling.Contrast, drawn: sampling.Floats, tail: float
) -> sampling.Floats:
    """The low and high ends, ``[2, head]``."""
    value = scored.value()
    shares = np.repeat([[tail], [1 - tail]], len(value), axis=1)
    ends = quantiles(np.sort(drawn, axis=0), shares)
    return np.where(np.isnan(value) | (scored.seen() < 2), np.nan, ends)


def _p_values(contrast: sampling.Contrast, drawn: sampling.Floats) -> sampling.Floats:
    """The share of draws as far from the difference as it is from 0; undefined draws count."""
    value = contrast.value()
    far = count_as_far(drawn - value, value, contrast.tolerance(), "two-sided")
    p = (far + 1) / (len(drawn) + 1)
    p = np.maximum(p, floor(contrast.sentences, "two-sided"))
    return np.where(np.isnan(value) | (contrast.seen() < 2), np.nan, p)


def _flat(statistics: sampling.Floats) -> sampling.Floats:
    """All head axes as one: ``[sentence, head, statistic]``."""
    return statistics.reshape(len(statistics), -1, statistics.shape[-1])


def _resamples(scored: Scored, draws: int, seed: int) -> Iterator[tuple[Scored, sampling.Floats]]:
    """Runs of heads whose replicates fit in memory together; each meets the same resamples."""
    size = max(1, _HELD // draws)
    for start in range(0, len(scored.value()), size):
        part = scored.heads(slice(start, start + size))
        yield part, sampling.replicates(part, draws, seed)


def _shaped(shape: tuple[int, ...], *arrays: sampling.Floats) -> list[sampling.Floats]:
    """The head axes as they came; plain numbers where there were none."""
    return [array.reshape(shape)[()] for array in arrays]


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
