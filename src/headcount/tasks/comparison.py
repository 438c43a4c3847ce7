"""Two outcomes of one task compared, or many with one baseline: differences with their p values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from headcount import stats
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.tasks.task import Outcome


# --- A metric -----------------------------------------------------------------------------------

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
    statistic: stats.Statistic | None
    higher_is_better: bool = True
    test: Test = "bootstrap"
    #: What one example scores, ``[example, column]`` to ``[example]``; by default the metric of it.
    each: stats.Statistic | None = None
    #: The metric of examples drawn so many times each, ``[example, column]`` and
    #: ``[draw, example]`` to ``[draw]``; only where no sum gives it.
    drawn: Callable[[stats.Floats, stats.Floats], stats.Floats] | None = None
    #: Why the metric of some statistics is undefined, for a value of NaN.
    reason: Callable[[stats.Floats], str] = lambda statistics: "there was nothing to count"
    #: The most draws of a bootstrap, for a metric that is slow to compute.
    most_draws: int | None = None
    #: How another program names exactly this metric, such as sacreBLEU's signature.
    signature: str | None = None

    def value(self, statistics: stats.Floats) -> float:
        """The metric over all examples, ``[example, column]``."""
        if self.statistic is not None:
            return float(self.statistic(statistics.sum(axis=0)))
        return float(self.resample(statistics, np.ones((1, len(statistics))))[0])

    def draws(self, asked: int) -> int:
        """How many draws a bootstrap has where so many are asked for."""
        return asked if self.most_draws is None else min(asked, self.most_draws)

    def scores(self, statistics: stats.Floats) -> stats.Floats:
        """What each example scores, ``[example]``."""
        each = self.each or self.statistic
        assert each is not None  # a metric that no sum gives says what one example scores
        return np.asarray(each(statistics), dtype=np.float64)

    def resample(self, statistics: stats.Floats, weights: stats.Floats) -> stats.Floats:
        """The metric of resampled examples, ``[draw, example]`` counts to ``[draw]``."""
        if self.statistic is not None:
            return np.asarray(self.statistic(weights @ statistics))
        assert self.drawn is not None  # or there would be no way to compute the metric
        return self.drawn(statistics, weights)


def _of_own(metric: Any, name: str, usual: Any) -> Any:
    """What a metric of the caller's own says of itself, or the object whose method it is."""
    owner = getattr(getattr(metric, "func", metric), "__self__", None)  # a partial's, a method's
    return getattr(metric, name, getattr(owner, name, usual))


def function_name(metric: Any) -> str:
    """What a metric of the caller's own is called."""
    return str(_of_own(metric, "name", None) or getattr(metric, "__name__", "metric"))


def more_is_better(metric: Any) -> bool:
    """Whether more of it is better: so it is unless it says ``higher_is_better = False``."""
    return bool(_of_own(metric, "higher_is_better", True))


def called(metric: Any, predictions: Any, references: Any) -> float:
    """The number that a metric of the caller's own gives.

    It is a function of predictions and references, or a metric of Hugging Face's evaluate, or its
    `compute`, which gives one number or several by name: then the one that is named as the metric.

    >>> called(lambda said, true: sum(a == b for a, b in zip(said, true)), [1, 0], [1, 1])
    1.0
    """
    function = getattr(metric, "compute", metric)
    by_name = function is not metric
    with suppress(TypeError, ValueError):  # a builtin may not say what it takes
        kinds = [one.kind for one in signature(function).parameters.values()]
        by_name |= Parameter.KEYWORD_ONLY in kinds[:1]
    if by_name:
        found = function(predictions=list(predictions), references=list(references))
    else:
        found = function(predictions, references)
    if isinstance(found, Mapping):
        name = function_name(metric)
        numbers = [one for one in found.values() if isinstance(one, int | float)]
        if name not in found and len(numbers) != 1:
            raise UsageError(
                f"The metric {name} gives {', '.join(map(str, found))}; give a function that "
                "returns one of these numbers."
            )
        found = found[name] if name in found else numbers[0]
    try:
        return float(found)
    except (TypeError, ValueError):
        raise UsageError(
            f"The metric {function_name(metric)} gave a {type(found).__name__}; it must give a "
            "number."
        ) from None


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


# --- Two outcomes of one task compared, or many with one baseline -------------------------------

#: What may differ between two outcomes that are compared: how the model was made to speak.
_FREE = {"beams", "max_new_tokens", "length_penalty", "data"}


class Comparison(NamedTuple):
    """A difference of metrics with its interval and p value; arrays where many were compared."""

    value: stats.Floats
    low: stats.Floats
    high: stats.Floats
    p: stats.Floats
    #: Corrected over everything that was compared together.
    p_adjusted: stats.Floats
    #: Where the p value comes from.
    test: Test

    def one(self, number: int) -> Comparison:
        """One of many, as plain numbers."""
        value, low, high, p, adjusted = (column[number] for column in self[:5])
        return Comparison(value, low, high, p, adjusted, self.test)


def compare_outcomes(
    outcomes: Sequence[Outcome],
    baseline: Outcome,
    *,
    draws: int = stats.DRAWS,
    confidence: float = 0.95,
    correction: stats.Correction = "holm",
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
    metric, counted = baseline.metric, baseline.statistics
    systems = np.stack([outcome.statistics for outcome in outcomes], axis=1)
    claim: dict[str, Any] = {"correction": correction, "level": level}
    drawn: dict[str, Any] = claim | {"draws": metric.draws(draws), "seed": seed}
    found = stats.bootstrap_difference(
        systems, counted, metric.statistic, redrawn=metric.drawn, confidence=confidence, **drawn
    )
    tested: stats.PairedTest | stats.PairedDifference = found
    if metric.test == "mcnemar":
        right = np.stack([outcome.scores for outcome in outcomes], axis=1)
        tested = stats.mcnemar(right, baseline.scores, **claim)
    elif metric.test == "sign-flip":
        assert metric.statistic is not None  # a loss is a ratio of sums
        tested = stats.sign_flip_scores(systems, counted, metric.statistic, **drawn)
    return Comparison(*found[:3], tested.p, tested.p_adjusted, metric.test)


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
