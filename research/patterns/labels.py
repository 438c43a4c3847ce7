"""Labels against labels: tables of counts, a row a unit to resample, and scores of their sums.

scikit-learn has kappa and F1 of one list of labels; a bootstrap needs them of many sums at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats import Floats, Statistic


def crossed(
    first: Sequence[str], second: Sequence[str], labels: Sequence[str], units: Sequence[object]
) -> Floats:
    """A table ``[unit, first * second]`` of counts: rows to resample, cells to make scores of.

    >>> crossed(["a", "b"], ["a", "a"], ["a", "b"], [0, 1]).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    for label in (*first, *second):
        if label not in labels:
            raise StatsError(f"'{label}' is no label; there are {', '.join(labels)}.")
    if not len(first) == len(second) == len(units):
        raise StatsError(
            f"There are {len(first)} first labels, {len(second)} second ones and {len(units)} "
            "units; give one of each for every item."
        )
    place = {label: number for number, label in enumerate(labels)}
    known = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
    counts = np.zeros((len(known), len(labels) ** 2))
    for one, two, unit in zip(first, second, units, strict=True):
        counts[known[unit], place[one] * len(labels) + place[two]] += 1
    return counts


def kappa(counts: Floats) -> Floats:
    """Cohen 1960: agreement beyond chance, of counts ``[..., first * second]``.

    >>> float(kappa(np.array([20.0, 5, 10, 15])).round(3))
    0.4
    """
    table = _square(counts)
    share = table / np.maximum(table.sum((-2, -1), keepdims=True), 1)
    agreed = np.trace(share, axis1=-2, axis2=-1)
    chance = (share.sum(-1) * share.sum(-2)).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)


def f1_of(label: int) -> Statistic:
    """The F1 of one label of such counts, where the first labels are the true ones.

    >>> float(f1_of(0)(np.array([20.0, 5, 10, 15])).round(3))
    0.727
    """

    def f1(counts: Floats) -> Floats:
        table = _square(counts)
        both = table[..., label, :].sum(-1) + table[..., :, label].sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(both > 0, 2 * table[..., label, label] / both, np.nan)

    return f1


def macro_f1(counts: Floats) -> Floats:
    """The mean F1 of the labels that occur on either side."""
    labels = _square(counts).shape[-1]
    each = np.stack([f1_of(label)(counts) for label in range(labels)])
    seen = ~np.isnan(each)
    total = np.where(seen, each, 0.0).sum(0)
    return np.where(seen.any(0), total / np.maximum(seen.sum(0), 1), np.nan)


def _square(counts: npt.ArrayLike) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    side = round(array.shape[-1] ** 0.5)
    if side**2 != array.shape[-1]:
        raise StatsError(f"{array.shape[-1]} counts make no square table of labels.")
    return array.reshape(*array.shape[:-1], side, side)
