"""What a point of a metric is: the unit in which a loss of quality is allowed."""

from __future__ import annotations

__all__ = ["point_of", "points_in_words"]

#: Metrics that are shares or correlations: a point is a hundredth.
_OF_ONE = ("accuracy", "f1", "matthews", "pearson", "spearman")
_UNITS = {"loss": "nats", "perplexity": "perplexity", "bleu": "BLEU", "chrf": "chrF"}


def point_of(metric: str) -> float:
    """One point of a metric, as the metric counts.

    A hundredth for accuracy, F1 and correlations; 1 of 100 for BLEU and chrF; a nat for losses.

    >>> point_of("accuracy"), point_of("bleu")
    (0.01, 1.0)
    """
    return 0.01 if metric in _OF_ONE else 1.0


def points_in_words(points: float, metric: str) -> str:
    """So many points, said so that nobody takes a share for a percentage.

    >>> points_in_words(0.5, "accuracy"), points_in_words(0.5, "bleu")
    ('0.5 points of accuracy (0.005)', '0.5 BLEU')
    """
    if metric in _OF_ONE:
        return f"{points:g} points of {metric} ({points / 100:g})"
    return f"{points:g} {_UNITS.get(metric, f'of {metric}')}"
