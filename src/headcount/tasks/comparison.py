"""Two outcomes of one task compared, or many with one baseline: differences with their p values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headcount.errors import UsageError
from headcount.stats.bootstrap import bootstrap_difference
from headcount.stats.mcnemar import mcnemar
from headcount.stats.resample import DRAWS
from headcount.stats.resolution import Correction
from headcount.stats.results import Floats, PairedDifference, PairedTest
from headcount.stats.signflip import sign_flip_scores
from headcount.tasks.metric import Metric, Test
from headcount.tasks.redraw import redraw_difference

if TYPE_CHECKING:
    from headcount.tasks.outcome import Outcome

__all__ = ["Comparison", "compare"]


#: What may differ between two outcomes that are compared: how the model was made to speak.
_FREE = {"beams", "max_new_tokens", "length_penalty", "data"}


class Comparison(NamedTuple):
    """A difference of metrics with its interval and p value; arrays where many were compared."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    #: Corrected over everything that was compared together.
    p_adjusted: Floats
    #: Where the p value comes from.
    test: Test

    def one(self, number: int) -> Comparison:
        """One of many, as plain numbers."""
        value, low, high, p, adjusted = (column[number] for column in self[:5])
        return Comparison(value, low, high, p, adjusted, self.test)


def compare(
    outcomes: Sequence[Outcome],
    baseline: Outcome,
    *,
    draws: int = DRAWS,
    confidence: float = 0.95,
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> Comparison:
    """Outcomes minus a baseline, on the same resamples and corrected together: ``[outcome]``.

    Intervals come from the paired bootstrap over examples (Koehn 2004). The p value is McNemar's
    for accuracy, of sign flips for losses, of the bootstrap otherwise. Examples or draws that
    are too few for the corrected level are refused.
    """
    if not outcomes:
        raise UsageError("There is no outcome to compare with the baseline; give one or more.")
    for outcome in outcomes:
        _check_same(outcome, baseline)
    systems, metric = [outcome.statistics for outcome in outcomes], baseline.metric
    asked = _Asked(draws, confidence, correction, level, seed)
    found = _difference(metric, systems, baseline.statistics, asked)
    tested = _tested(metric, outcomes, baseline, asked) or found
    return Comparison(*found[:3], tested.p, tested.p_adjusted, metric.test)


class _Asked(NamedTuple):
    draws: int
    confidence: float
    correction: Correction
    level: float
    seed: int


def _difference(
    metric: Metric, systems: Sequence[Floats], baseline: Floats, asked: _Asked
) -> PairedDifference:
    """Differences, their intervals, and the bootstrap's own p values."""
    if metric.statistic is None:
        return redraw_difference(metric, systems, baseline, **asked._asdict())
    stacked = np.stack(systems, axis=1)
    return bootstrap_difference(stacked, baseline, metric.statistic, **asked._asdict())


def _tested(
    metric: Metric, outcomes: Sequence[Outcome], baseline: Outcome, asked: _Asked
) -> PairedTest | None:
    """The p values of a better test than the bootstrap, where the metric has one."""
    if metric.test == "mcnemar":
        right = np.stack([outcome.scores for outcome in outcomes], axis=1)
        return mcnemar(right, baseline.scores, correction=asked.correction, level=asked.level)
    if metric.test == "sign-flip":
        assert metric.statistic is not None  # a loss is a ratio of sums
        stacked = np.stack([outcome.statistics for outcome in outcomes], axis=1)
        options = {key: value for key, value in asked._asdict().items() if key != "confidence"}
        return sign_flip_scores(stacked, baseline.statistics, metric.statistic, **options)
    return None


def _check_same(outcome: Outcome, baseline: Outcome) -> None:
    """Refuse to subtract apples from pears."""
    if outcome.name != baseline.name:
        raise UsageError(
            f"The metric of one outcome is {outcome.name} and of the other {baseline.name}; "
            "compare outcomes of the same task."
        )
    ours, theirs = (one.provenance.get("task", {}) for one in (outcome, baseline))
    if len(outcome) != len(baseline) or ours.get("hash") != theirs.get("hash"):
        raise UsageError(
            f"The outcomes are of different examples ({len(outcome):,} and {len(baseline):,}); a "
            "paired comparison needs the same task on both sides."
        )
    for key in sorted((ours.keys() | theirs.keys()) - _FREE):
        if ours.get(key) != theirs.get(key):
            raise UsageError(
                f"The tasks of the two outcomes differ: {key} is {ours.get(key)!r} in one and "
                f"{theirs.get(key)!r} in the other; compare outcomes of the same task."
            )
