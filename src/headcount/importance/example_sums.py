"""What every example adds to each head's score, and the score with its interval over examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount import stats
from headcount.stats.results import Floats, Interval

__all__ = ["ExampleSums"]


class ExampleSums:
    """A ratio of sums for each head, Σx / Σn over examples; rows of one example add up first.

    >>> sums = ExampleSums()
    >>> sums.add([0, 1, 1], np.array([[3.0], [-2.0], [1.0]]), np.array([[1.0], [1.0], [0.0]]))
    >>> sums.interval(absolute=True).value.tolist()
    [2.0]
    """

    def __init__(self) -> None:
        self._index: list[int] = []
        self._x: list[np.ndarray] = []
        self._n: list[np.ndarray] = []

    def add(self, index: Sequence[int], x: np.ndarray, n: np.ndarray) -> None:
        """Add a batch, ``[row, head]`` twice; `index` says which example each row belongs to."""
        self._index += index
        self._x.append(x)
        self._n.append(np.broadcast_to(n, x.shape))

    def statistics(self, absolute: bool) -> Floats:
        """x and n of each example, ``[example, head, 2]``; `absolute` drops the sign of x."""
        _, place = np.unique(self._index, return_inverse=True)
        parts = []
        for rows in (self._x, self._n):
            added = np.zeros((place.max() + 1, rows[0].shape[1]))
            np.add.at(added, place, np.concatenate(rows))
            parts.append(added)
        return np.stack([np.abs(parts[0]) if absolute else parts[0], parts[1]], axis=-1)

    def interval(self, absolute: bool) -> Interval:
        """The score of each head with its 95% interval; scores are never below 0."""
        both = self.statistics(absolute)
        x, n = both[..., 0], both[..., 1]
        xs, ns, xx, xn, nn = (part.sum(axis=0) for part in (x, n, x * x, x * n, n * n))
        return stats.ratio_interval(xs, ns, xx, xn, nn, len(both), bounds=(0, np.inf))
