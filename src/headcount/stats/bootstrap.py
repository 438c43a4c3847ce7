"""Sentences resampled: bootstrap intervals, paired differences with p values, and the jackknife.

Efron & Tibshirani 1993; Koehn 2004 for paired differences; Tukey 1958 and Kott 2001 for the
jackknife over groups of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from headcount.errors import StatsError
from headcount.stats import sample as sampling
from headcount.stats.corrections import (
    ALTERNATIVES,
    Alternative,
    Correction,
    adjust,
    check_resolution,
    count_as_far,
    floor,
)

Scored = TypeVar("Scored", sampling.Sample, sampling.Contrast)

# Replicates of all heads are held for their quantiles: at most this many numbers (128 MB) at once.
_HELD = 2**24


def bootstrap_interval(
    statistics: npt.ArrayLike,
    statistic: sampling.Statistic = sampling.ratio,
    *,
    draws: int = sampling.DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> sampling.Interval:
    """A score's interval from resampled sentences, for ``[sentence, head..., statistic]``.

    Efron & Tibshirani 1993, chapter 13 (percentiles). A sentence whose statistics are all zero has
    not seen that head; a head seen in fewer than two sentences has NaN ends. Draws in which the
    score is undefined are left out.

    >>> hits_and_arcs = np.array([[3, 4], [2, 5], [4, 4], [1, 3]])
    >>> [round(float(number), 2) for number in bootstrap_interval(hits_and_arcs)]
    [0.62, 0.38, 0.88]
    """
    array = sampling.read_statistics(statistics)
    sampling.check_statistic(statistic, array)
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
    tail = (1 - sampling.read_share(confidence, "confidence")) / 2
    sample = sampling.Sample(_flat(array), statistic)
    ends = [_ends(part, drawn, tail) for part, drawn in _resamples(sample, draws, seed)]
    return sampling.Interval(
        *_shaped(array.shape[1:-1], sample.value(), *np.concatenate(ends, axis=1))
    )


def bootstrap_difference(
    statistics: npt.ArrayLike,
    baseline: npt.ArrayLike,
    statistic: sampling.Statistic = sampling.ratio,
    *,
    draws: int = sampling.DRAWS,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
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
    sampling.read_choice(alternative, "alternative", ALTERNATIVES)
    contrast = sampling.Contrast(
        sampling.Sample(_flat(ours), statistic), sampling.Sample(_flat(theirs), statistic)
    )
    value = contrast.value()
    tests = int(np.count_nonzero(~np.isnan(value) & (contrast.seen() >= 2)))
    check_resolution(
        tests=max(tests, 1), draws=draws, sentences=len(ours), level=level, method=correction,
        alternative=alternative,
    )  # fmt: skip
    found = [
        np.stack([*_ends(part, drawn, tail), _p_values(part, drawn, alternative)])
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


def _p_values(
    contrast: sampling.Contrast, drawn: sampling.Floats, alternative: Alternative
) -> sampling.Floats:
    """The share of draws as far from the difference as it is from 0; undefined draws count."""
    value = contrast.value()
    far = count_as_far(drawn - value, value, contrast.tolerance(), alternative)
    p = (far + 1) / (len(drawn) + 1)
    p = np.maximum(p, floor(contrast.sentences, alternative))
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


# --- The jackknife over groups of sentences -----------------------------------------------------


def jackknife_interval(
    value: npt.ArrayLike, without: npt.ArrayLike, confidence: float = 0.95
) -> sampling.Interval:
    """A figure of all sentences, and its interval from the figures without each group.

    `without` is `[group, ...]`. Delete-a-group jackknife (Tukey 1958; Kott 2001) with Student's
    t. A difference between two models that read the same sentences is such a figure, so what
    sentences do to both cancels.

    >>> sample = np.array([3.0, 5.0, 4.0, 6.0])
    >>> left = [np.delete(sample, place).mean() for place in range(4)]
    >>> [round(float(number), 3) for number in jackknife_interval(sample.mean(), left)]
    [4.5, 2.446, 6.554]
    """
    figure, left = np.asarray(value, np.float64), np.asarray(without, np.float64)
    groups = len(left)
    if groups < 2:
        raise StatsError(f"There is {groups} group of sentences; a jackknife needs two or more.")
    spread = ((left - left.mean(0)) ** 2).sum(0) * (groups - 1) / groups
    half = np.sqrt(spread) * stdtrit(groups - 1, 0.5 + confidence / 2)
    return sampling.Interval(figure, figure - half, figure + half)
