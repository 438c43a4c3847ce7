"""How far two rankings of the heads agree.

Spearman 1904, Kendall 1945 (tau-b, which allows for ties) and Pearson, each also over heads that a
bootstrap draws several times.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats import DRAWS, Floats, bootstrap_interval, read_choice, read_finite

Kind = Literal["spearman", "kendall", "pearson"]
CORRELATIONS: tuple[Kind, ...] = ("spearman", "kendall", "pearson")


class Agreement(NamedTuple):
    """A correlation over heads with its interval; NaN with a note that says why there is none."""

    value: float
    low: float
    high: float
    heads: int
    note: str = ""


def rank_agreement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    kind: Kind = "spearman",
    *,
    draws: int = DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """The correlation of two scores over heads, with a percentile interval from resampled heads.

    Kinds: spearman, kendall (tau-b), pearson. Scores that are the same for every head, or fewer
    than three heads, give NaN and a note. Draws without a correlation are left out.

    >>> found = rank_agreement([1, 2, 3, 4, 5, 6], [1, 3, 2, 4, 6, 5])
    >>> round(found.value, 3), found.heads
    (0.886, 6)
    """
    one, two = (
        read_finite(first, "first scores"),
        read_finite(second, "second scores"),
    )
    if one.ndim != 1 or one.shape != two.shape:
        raise StatsError(
            f"The scores have shapes {one.shape} and {two.shape}; give two vectors of one length, "
            "with the same heads in the same order."
        )
    read_choice(kind, "kind of agreement", CORRELATIONS)
    note = why_none(one, two, ("first score", "second score"))
    if note:
        return Agreement(np.nan, np.nan, np.nan, len(one), note)
    value, low, high = bootstrap_interval(
        np.stack([one, two], axis=1),
        None,
        redrawn=lambda rows, weights: correlate_weighted(rows[:, 0], rows[:, 1], weights, kind),
        draws=draws,
        confidence=confidence,
        seed=seed,
    )
    return Agreement(float(value), float(low), float(high), len(one))


def why_none(one: Floats, two: Floats, names: tuple[str, str]) -> str:
    """The note where two scores have no correlation, else nothing."""
    if len(one) < 3:
        return f"{len(one)} heads are too few"
    for name, scores in zip(names, (one, two), strict=True):
        if np.ptp(scores) == 0:
            return f"{name} is the same for every head"
    return ""


def correlate_weighted(one: Floats, two: Floats, weights: Floats, kind: Kind) -> Floats:
    """The correlation over heads drawn `weights` times, ``[head]`` twice and ``[draw, head]``.

    NaN where one score is constant over the heads drawn.

    >>> one, two, last_twice = np.array([1.0, 2, 3]), np.array([3.0, 1, 3]), np.array([[1.0, 1, 2]])
    >>> correlate_weighted(one, two, last_twice, "pearson").round(3)
    array([0.174])
    """
    if kind == "kendall":
        return _kendall(one, two, weights)
    if kind == "spearman":
        return _pearson(_weighted_ranks(one, weights), _weighted_ranks(two, weights), weights)
    return _pearson(one[None], two[None], weights)


def _pearson(one: Floats, two: Floats, weights: Floats) -> Floats:
    """Pearson's r of each row; a spread that is nothing but rounding counts as none."""
    total = weights.sum(axis=1, keepdims=True)
    parts = []
    for scores in (one, two):
        away = scores - np.sum(weights * scores, axis=1, keepdims=True) / total
        spread = np.sqrt(np.sum(weights * away**2, axis=1, keepdims=True))
        rounding = 1e-12 * np.sqrt(np.sum(weights * scores**2, axis=1, keepdims=True))
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append(np.where(spread > rounding, away / spread, np.nan))
    return np.clip(np.sum(weights * parts[0] * parts[1], axis=1), -1, 1)


def _weighted_ranks(scores: Floats, weights: Floats) -> Floats:
    """The mean rank of each head among heads drawn `weights` times; equal scores share theirs."""
    order = np.argsort(scores, kind="stable")
    begins = np.diff(scores[order], prepend=-np.inf) > 0  # a new score, not a tie
    sizes = np.add.reduceat(weights[:, order], np.flatnonzero(begins), axis=1)
    ranks = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    group = np.empty(len(scores), dtype=np.intp)
    group[order] = np.cumsum(begins) - 1
    return ranks[:, group]


def _kendall(one: Floats, two: Floats, weights: Floats) -> Floats:
    """Kendall's tau-b: with heads drawn several times, each sum over pairs is a quadratic form."""
    first, second = np.sign(one[:, None] - one), np.sign(two[:, None] - two)
    pairs, untied_first, untied_second = (
        np.sum((weights @ signs) * weights, axis=1)
        for signs in (first * second, np.abs(first), np.abs(second))
    )
    untied = untied_first * untied_second
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(untied > 0, pairs / np.sqrt(untied), np.nan)
