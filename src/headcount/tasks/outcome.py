"""The outcome of a task: its metric, each example's share in it, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headcount.stats.bootstrap import bootstrap_interval
from headcount.stats.resample import DRAWS
from headcount.stats.results import Floats, Interval
from headcount.stats.statistic import Statistic
from headcount.tasks.comparison import Comparison, compare
from headcount.tasks.metric import Metric
from headcount.tasks.redraw import redraw_interval

__all__ = ["Outcome"]


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What a model scored: one row of statistics an example, and everything that follows from it.

    >>> import numpy as np
    >>> from headcount.tasks.confusion import ACCURACY
    >>> outcome = Outcome(ACCURACY, np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> outcome
    Outcome(accuracy 0.75 over 4 examples)
    >>> outcome.scores
    array([1., 1., 0., 1.])
    """

    metric: Metric
    #: Sufficient statistics, ``[example, column]``; `metric.columns` names them.
    statistics: Floats
    #: What the model said: translations, labels, numbers; empty for a loss.
    outputs: Sequence[Any] = ()
    #: What a reader should know, e.g. why the value is NaN, or how many examples were cut.
    notes: tuple[str, ...] = ()
    #: The task and the model, in plain words and numbers.
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.statistics)

    def __repr__(self) -> str:
        return f"Outcome({self.name} {self.value:.4g} over {len(self):,} examples)"

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric.higher_is_better

    @property
    def signature(self) -> str | None:
        """How sacreBLEU names exactly this metric; None for other metrics."""
        return self.metric.signature

    @property
    def statistic(self) -> Statistic | None:
        """The metric as a function of summed statistics; None for Spearman, which no sum gives."""
        return self.metric.statistic

    @cached_property
    def value(self) -> float:
        """The metric over all examples; NaN where it is undefined, with the reason in `notes`."""
        return self.metric.value(self.statistics)

    @cached_property
    def scores(self) -> Floats:
        """What each example scores, ``[example]``: loss a token, right or wrong, sentence BLEU."""
        return self.metric.scores(self.statistics)

    def resample(self, weights: Floats) -> Floats:
        """The metric with examples drawn so many times each, ``[draw, example]`` to ``[draw]``."""
        return self.metric.resample(self.statistics, weights)

    def interval(self, *, draws: int = DRAWS, confidence: float = 0.95, seed: int = 0) -> Interval:
        """The metric with its percentile interval, from resampled examples."""
        if self.statistic is None:
            return redraw_interval(self.metric, self.statistics, draws, confidence, seed)
        return bootstrap_interval(
            self.statistics, self.statistic, draws=draws, confidence=confidence, seed=seed
        )

    def against(
        self,
        other: Outcome,
        *,
        draws: int = DRAWS,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> Comparison:
        """This outcome minus another of the same task: difference, interval and p value.

        The test is McNemar's exact one for accuracy, sign flips for losses, and the paired
        bootstrap for everything else; see `headcount.tasks.compare` for many outcomes at once.
        """
        many = compare([self], other, draws=draws, confidence=confidence, seed=seed)
        return many.one(0)
