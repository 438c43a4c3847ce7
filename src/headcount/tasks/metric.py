"""A metric: a number made of one row of statistics an example, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from headcount.errors import UsageError
from headcount.stats.results import Floats
from headcount.stats.statistic import Statistic

__all__ = ["Metric", "Test", "choose_metric"]

#: Which paired test compares two outcomes.
Test = Literal["bootstrap", "mcnemar", "sign-flip"]


@dataclass(frozen=True)
class Metric:
    """What is counted for each example, and the number that comes of it.

    >>> from headcount.stats import ratio
    >>> accuracy = Metric("accuracy", columns=("hits", "examples"), statistic=ratio)
    >>> accuracy.value(np.array([[1.0, 1.0], [0.0, 1.0]]))
    0.5
    """

    name: str
    #: What each column of the statistics holds.
    columns: tuple[str, ...]
    #: The metric of summed statistics ``[..., column]``; None where no sum gives it.
    statistic: Statistic | None
    higher_is_better: bool = True
    test: Test = "bootstrap"
    #: What one example scores, ``[example, column]`` to ``[example]``; by default the metric of it.
    each: Statistic | None = None
    #: The metric of examples drawn so many times each, ``[example, column]`` and
    #: ``[draw, example]`` to ``[draw]``; only where no sum gives it.
    drawn: Callable[[Floats, Floats], Floats] | None = None
    #: Why the metric of some statistics is undefined, for a value of NaN.
    reason: Callable[[Floats], str] = lambda statistics: "there was nothing to count"
    #: How another program names exactly this metric, such as sacreBLEU's signature.
    signature: str | None = None

    def value(self, statistics: Floats) -> float:
        """The metric over all examples, ``[example, column]``."""
        if self.statistic is not None:
            return float(self.statistic(statistics.sum(axis=0)))
        return float(self.resample(statistics, np.ones((1, len(statistics))))[0])

    def scores(self, statistics: Floats) -> Floats:
        """What each example scores, ``[example]``."""
        each = self.each or self.statistic
        assert each is not None  # a metric that no sum gives says what one example scores
        return np.asarray(each(statistics), dtype=np.float64)

    def resample(self, statistics: Floats, weights: Floats) -> Floats:
        """The metric with examples drawn so many times each, ``[draw, example]`` to ``[draw]``."""
        if self.statistic is not None:
            return np.asarray(self.statistic(weights @ statistics))
        assert self.drawn is not None  # or there would be no way to compute the metric
        return self.drawn(statistics, weights)


M = TypeVar("M")


def choose_metric(kind: str, name: str, known: Mapping[str, M]) -> M:
    """A kind's metric by name.

    >>> choose_metric("translation", "acuracy", {"bleu": 1, "chrf": 2, "loss": 3})
    Traceback (most recent call last):
    headcount.errors.UsageError: Tasks of the kind translation have no metric 'acuracy'; choose
    bleu, chrf or loss.
    """
    if name not in known:
        *most, last = known
        raise UsageError(
            f"Tasks of the kind {kind} have no metric '{name}'; choose {', '.join(most)} or {last}."
        )
    return known[name]
