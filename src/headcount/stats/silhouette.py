"""Whether things that share a label lie together: the silhouette, against labels shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.sample import Floats, Statistic

# --- Whether things that share a label lie together ---------------------------------------------


class SilhouetteTest(NamedTuple):
    """The mean silhouette, the middle 95% of what shuffled labels give, and how many give more."""

    value: float
    low: float
    high: float
    p: float


def mean_silhouette(distances: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Mean of (b - a) / max(a, b): a is the mean distance to one's own, b to the nearest others.

    Rousseeuw 1987. From -1 to 1; something alone under its label counts as 0.

    >>> apart = [[0, 1, 9, 9], [1, 0, 9, 9], [9, 9, 0, 1], [9, 9, 1, 0]]
    >>> round(mean_silhouette(apart, [0, 0, 1, 1]), 3)
    0.889
    """
    numbers = _numbers(labels)
    return float(_silhouettes(np.asarray(distances, np.float64), numbers[None])[0])


def silhouette_test(
    distances: npt.ArrayLike, labels: npt.ArrayLike, *, draws: int = 2000, seed: int = 0
) -> SilhouetteTest:
    """The mean silhouette beside that of labels shuffled at random; p is (b+1)/(draws+1).

    >>> apart = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    >>> silhouette_test(apart, np.arange(12) // 4).p < 0.01
    True
    """
    apart, numbers = np.asarray(distances, np.float64), _numbers(labels)
    if apart.shape != (len(numbers), len(numbers)):
        raise StatsError(
            f"The distances have the shape {apart.shape} and there are {len(numbers)} labels; "
            "give a square of distances with one label a row."
        )
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(numbers, (draws, 1)), axis=1)
    found = np.concatenate([_silhouettes(apart, part) for part in np.array_split(shuffled, 20)])
    value = mean_silhouette(apart, numbers)
    low, high = np.quantile(found, [0.025, 0.975])
    p = (1 + int((found >= value - 1e-12).sum())) / (draws + 1)
    return SilhouetteTest(value, float(low), float(high), p)


def _numbers(labels: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Labels as numbers from 0; one label alone has no others to compare with."""
    kinds, numbers = np.unique(np.asarray(labels), return_inverse=True)
    if not 2 <= len(kinds) < len(numbers):
        raise StatsError(
            f"{len(numbers)} things have {len(kinds)} different labels; a silhouette needs at "
            "least two labels, one of them shared."
        )
    return numbers


def _silhouettes(distances: Floats, labels: npt.NDArray[np.intp]) -> Floats:
    """The mean silhouette of each row of labels `[draw, thing]`."""
    member = (labels[..., None] == np.arange(labels.max() + 1)).astype(np.float64)
    count = member.sum(1)[:, None, :]
    sums = distances @ member
    own = (sums * member).sum(-1) / np.maximum((count * member).sum(-1) - 1, 1)
    others = np.where(member > 0, np.inf, sums / np.maximum(count, 1)).min(-1)
    alone = (count * member).sum(-1) == 1
    larger = np.maximum(own, others)
    each = np.where(alone | (larger == 0), 0.0, (others - own) / np.where(larger > 0, larger, 1))
    mean: Floats = each.mean(-1)
    return mean


# --- Labels against labels ----------------------------------------------------------------------


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
