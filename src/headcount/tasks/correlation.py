"""Metrics of predicted numbers: Pearson's and Spearman's correlation with the gold ones."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from headcount.stats.correlation import correlate_weighted
from headcount.stats.results import Floats
from headcount.tasks.metric import Metric

__all__ = ["PEARSON", "SPEARMAN", "pair_sums", "pearson"]


def pair_sums(predicted: Floats, gold: Floats) -> Floats:
    """What Pearson's correlation adds up, ``[example, 6]``: 1, x, y, xx, yy, xy.

    >>> pair_sums(np.array([2.0]), np.array([3.0]))
    array([[1., 2., 3., 4., 9., 6.]])
    """
    one = np.ones_like(predicted)
    return np.stack([one, predicted, gold, predicted**2, gold**2, predicted * gold], axis=1)


def pearson(sums: Floats) -> Floats:
    """Pearson's r of summed pairs ``[..., 6]``; NaN where one side does not vary.

    >>> x, y = np.array([1.0, 2, 3]), np.array([1.0, 3, 2])
    >>> pearson(pair_sums(x, y).sum(axis=0)).round(3)
    np.float64(0.5)
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread_x, spread_y = _spread(n, x, xx), _spread(n, y, yy)
        r = (xy - x * y / n) / np.sqrt(spread_x * spread_y)
    return np.clip(r, -1, 1)[()]


def _spread(n: Floats, total: Floats, squares: Floats) -> Floats:
    """The sum of squares around the mean; NaN where it is nothing but rounding."""
    spread = squares - total**2 / n
    return np.where(spread > 1e-12 * squares, spread, np.nan)


def _shares(x: Floats, y: Floats) -> Floats:
    """What each pair adds to the correlation: products of standard scores, whose mean is r."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x - x.mean()) * (y - y.mean()) / (x.std() * y.std())


def _spearman(rows: Floats, weights: Floats) -> Floats:
    x, y = rows.T
    if _is_constant(x) or _is_constant(y):
        return np.full(len(weights), np.nan)
    return correlate_weighted(x, y, weights, "spearman")


def _is_constant(values: Floats) -> bool:
    """Whether values differ by rounding alone, which has an order but no meaning."""
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max())


def _why(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return "a correlation needs two examples or more"
    name, values = ("predictions", x) if _is_constant(x) else ("gold scores", y)
    return f"all {len(values)} {name} are {values[0]:.6g}, and a constant has no order"


PEARSON = Metric(
    "pearson",
    ("examples", "prediction", "gold", "prediction²", "gold²", "prediction · gold"),
    pearson,
    each=lambda rows: _shares(rows[:, 1], rows[:, 2]),
    reason=lambda rows: _why(rows[:, 1], rows[:, 2]),
)
SPEARMAN = Metric(
    "spearman",
    ("prediction", "gold"),
    None,
    each=lambda rows: _shares(rankdata(rows[:, 0]), rankdata(rows[:, 1])),
    drawn=_spearman,
    reason=lambda rows: _why(rows[:, 0], rows[:, 1]),
)
