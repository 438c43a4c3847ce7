"""Whether things that share a label lie together: the silhouette, against labels shuffled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.sample import Floats


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
