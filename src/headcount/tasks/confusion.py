"""Metrics of a classifier: accuracy, F1 and Matthews' correlation, from counts by class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headcount.stats.results import Floats
from headcount.stats.statistic import ratio
from headcount.tasks.metric import Metric

__all__ = ["ACCURACY", "F1", "MATTHEWS", "class_counts", "f1", "matthews"]


def class_counts(
    predicted: npt.NDArray[np.int_], gold: npt.NDArray[np.int_], classes: int
) -> Floats:
    """Hits, predictions and gold labels by class, one row an example: ``[example, 3 * class]``.

    >>> class_counts(np.array([1, 0]), np.array([1, 1]), 2)
    array([[0., 1., 0., 1., 0., 1.],
           [0., 0., 1., 0., 0., 1.]])
    """
    said, told = np.eye(classes)[predicted], np.eye(classes)[gold]
    return np.concatenate([said * told, said, told], axis=1)


def f1(sums: Floats) -> Floats:
    """F1 of the second of two classes, or the mean F1 of three or more that occur.

    >>> f1(np.array([0.0, 1, 1, 1, 0, 2])).round(3)
    np.float64(0.667)
    """
    hits, said, told = _by_class(sums)
    with np.errstate(invalid="ignore"):
        each = 2 * hits / (said + told)
    if hits.shape[-1] == 2:
        return each[..., 1][()]
    there = said + told > 0
    with np.errstate(invalid="ignore"):
        return (np.where(there, each, 0.0).sum(axis=-1) / there.sum(axis=-1))[()]


def matthews(sums: Floats) -> Floats:
    """Matthews' correlation for any number of classes; 0 where only one class is told or said.

    Matthews 1975; Gorodkin 2004, equation 8, for more than two classes.

    >>> matthews(class_counts(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 1]), 2).sum(0)).round(3)
    np.float64(0.577)
    """
    hits, said, told = _by_class(sums)
    total = told.sum(axis=-1)
    together = total * hits.sum(axis=-1) - (said * told).sum(axis=-1)
    alone = (total**2 - (said**2).sum(axis=-1)) * (total**2 - (told**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(alone > 0, together / np.sqrt(alone), np.where(total > 0, 0.0, np.nan))[()]


def _right(statistics: Floats) -> Floats:
    """Whether each example is right: 1 or 0."""
    return _by_class(statistics)[0].sum(axis=-1)


def _by_class(sums: Floats) -> tuple[Floats, Floats, Floats]:
    classes = sums.shape[-1] // 3
    return sums[..., :classes], sums[..., classes : 2 * classes], sums[..., 2 * classes :]


_COLUMNS = ("hits by class", "predictions by class", "gold labels by class")
ACCURACY = Metric("accuracy", ("hits", "examples"), ratio, test="mcnemar")
F1 = Metric(
    "f1",
    _COLUMNS,
    f1,
    each=_right,
    reason=lambda statistics: "the positive class is neither told nor predicted",
)
MATTHEWS = Metric("matthews", _COLUMNS, matthews, each=_right)
