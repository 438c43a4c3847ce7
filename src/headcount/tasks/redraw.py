"""The bootstrap for metrics that no sum of statistics gives, such as Spearman's correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.stats.bootstrap import quantiles
from headcount.stats.corrections import adjust
from headcount.stats.inputs import read_count, read_seed, read_share, read_statistics
from headcount.stats.resample import resample_weights
from headcount.stats.resolution import Correction, check_resolution, floor
from headcount.stats.results import Floats, Interval, PairedDifference
from headcount.tasks.metric import Metric

__all__ = ["redraw_difference", "redraw_interval"]


def redraw_interval(
    metric: Metric, statistics: Floats, draws: int, confidence: float, seed: int
) -> Interval:
    """A metric's percentile interval; draws in which it is undefined are left out."""
    rows = read_statistics(statistics)
    value = np.array([metric.value(rows)])
    drawn = _drawn(metric, [rows], draws, seed)
    low, high = _ends(value, drawn, confidence)
    return Interval(value[0], low[0], high[0])


def redraw_difference(
    metric: Metric,
    systems: Sequence[Floats],
    baseline: Floats,
    *,
    draws: int,
    confidence: float,
    correction: Correction,
    level: float,
    seed: int,
) -> PairedDifference:
    """Paired differences from one baseline, each system on the same resamples: ``[system]``.

    p as in `headcount.stats.bootstrap_difference`: the share of draws that lie as far from the
    difference as the difference from 0.
    """
    value = np.array([metric.value(rows) for rows in systems]) - metric.value(baseline)
    tests = int(np.count_nonzero(~np.isnan(value)))
    check_resolution(
        tests=max(tests, 1), draws=draws, sentences=len(baseline), level=level, method=correction
    )
    drawn = _drawn(metric, systems, draws, seed) - _drawn(metric, [baseline], draws, seed)
    low, high = _ends(value, drawn, confidence)
    nearer = np.abs(drawn - value) < np.abs(value) - 1e-12
    p = (np.count_nonzero(~nearer, axis=0) + 1) / (len(drawn) + 1)
    p = np.where(np.isnan(value), np.nan, np.maximum(p, floor(len(baseline), "two-sided")))
    return PairedDifference(value, low, high, p, adjust(p, correction))


def _drawn(metric: Metric, systems: Sequence[Floats], draws: int, seed: int) -> Floats:
    """The metric of each system on each resample, ``[draw, system]``."""
    draws, seed = read_count(draws, "draws"), read_seed(seed)
    examples = len(systems[0])
    chunks = [
        [metric.resample(rows, weights) for rows in systems]
        for weights in resample_weights(examples, draws, seed)
    ]
    return np.concatenate([np.stack(chunk, axis=1) for chunk in chunks])


def _ends(value: Floats, drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    tail = (1 - read_share(confidence, "confidence")) / 2
    shares = np.repeat([[tail], [1 - tail]], len(value), axis=1)
    ends = quantiles(np.sort(drawn, axis=0), shares)
    low, high = np.where(np.isnan(value), np.nan, ends)
    return low, high
