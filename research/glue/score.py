"""What the outputs of the dev rows are worth, by seed and on average over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.rooms.labels.labelled import F1, MATTHEWS, PEARSON, SPEARMAN, class_counts
from headcount.stats.sample import Floats, resample_weights
from headcount.tasks.comparison import Metric
from headcount.tasks.task import ACCURACY

__all__ = ["SCORES", "difference", "majority", "score", "statistics_of"]

SCORES: dict[str, Metric] = {
    metric.name: metric for metric in (ACCURACY, F1, MATTHEWS, PEARSON, SPEARMAN)
}
_DRAWS = 2000


def score(runs: Sequence[dict[str, Any]], metric: str, draws: int = _DRAWS) -> dict[str, Any]:
    """The mean over seeds with its 95% interval over dev rows, the spread, and each seed's own.

    The interval resamples dev rows, the same for all seeds, and takes the mean over seeds each
    time: it says how far other dev rows could move the mean. `sd` is the spread of the seeds.
    """
    chosen = SCORES[metric]
    systems = [statistics_of(run, metric) for run in runs]
    values = np.array([chosen.value(rows) for rows in systems])
    drawn = _drawn(chosen, systems, draws)
    low, high = np.nanpercentile(drawn.mean(axis=1), (2.5, 97.5))
    ends = np.nanpercentile(drawn, (2.5, 97.5), axis=0)
    return {
        "mean": _short(values.mean()),
        "low": _short(low),
        "high": _short(high),
        "sd": _short(values.std(ddof=1)) if len(values) > 1 else None,
        "seeds": [
            {"seed": run["seed"], "value": _short(value), "low": _short(a), "high": _short(b)}
            for run, value, a, b in zip(runs, values, *ends, strict=True)
        ],
    }


def difference(
    runs: Sequence[dict[str, Any]],
    others: Sequence[dict[str, Any]],
    metric: str,
    draws: int = _DRAWS,
) -> dict[str, float]:
    """One model's mean over seeds minus another's, with its interval over the same dev rows."""
    chosen, means, drawn = SCORES[metric], [], []
    for side in (runs, others):
        systems = [statistics_of(run, metric) for run in side]
        means.append(np.mean([chosen.value(rows) for rows in systems]))
        drawn.append(_drawn(chosen, systems, draws).mean(axis=1))
    low, high = np.nanpercentile(drawn[0] - drawn[1], (2.5, 97.5))
    return {"mean": _short(means[0] - means[1]), "low": _short(low), "high": _short(high)}


def majority(run: dict[str, Any]) -> float | None:
    """The accuracy of always saying the dev rows' most frequent class; none for numbers."""
    if len(run["outputs"][0]) == 1:
        return None
    return _short(np.bincount(run["gold"]).max() / len(run["gold"]))


def statistics_of(run: dict[str, Any], metric: str) -> Floats:
    """One row of the metric's statistics a dev row."""
    outputs, gold = np.array(run["outputs"]), np.array(run["gold"])
    if metric in ("pearson", "spearman"):
        return np.stack([outputs[:, 0], gold], axis=1)
    said = outputs.argmax(axis=1)
    if metric == "accuracy":
        return np.stack([said == gold, np.ones(len(gold))], axis=1).astype(np.float64)
    return class_counts(said, gold, outputs.shape[1])


def _drawn(metric: Metric, systems: Sequence[Floats], draws: int) -> Floats:
    """The metric of each seed on each resample, ``[draw, seed]``."""
    chunks = [
        np.stack([metric.resample(rows, weights) for rows in systems], axis=1)
        for weights in resample_weights(len(systems[0]), draws, seed=0)
    ]
    return np.concatenate(chunks)


def _short(value: Any) -> float:
    return round(float(value), 5)
