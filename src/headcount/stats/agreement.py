"""How far two rankings of the heads agree, with intervals over heads or over sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.bootstrap import quantiles
from headcount.stats.sample import (
    DRAWS,
    Floats,
    Sample,
    Statistic,
    check_statistic,
    ratio,
    read_choice,
    read_count,
    read_finite,
    read_seed,
    read_share,
    read_statistics,
    replicates,
    resample_weights,
)

if TYPE_CHECKING:
    import pandas as pd


# --- Spearman -----------------------------------------------------------------------------------

Kind = Literal["spearman", "kendall", "pearson"]
CORRELATIONS = ("spearman", "kendall", "pearson")


def correlate(one: Floats, two: Floats, kind: Kind) -> Floats:
    """The correlation of each pair of rows, ``[draw, head]`` twice; NaN where one is constant.

    >>> correlate(np.array([[1.0, 2, 3]]), np.array([[1.0, 3, 2]]), "kendall").round(3)
    array([0.333])
    """
    if kind == "kendall":
        rows = max(1, 2**20 // one.shape[1] ** 2)
        parts = range(0, len(one), rows)
        return np.concatenate([_kendall(one[i : i + rows], two[i : i + rows]) for i in parts])
    if kind == "spearman":
        from scipy.stats import rankdata

        one, two = rankdata(one, axis=1), rankdata(two, axis=1)
    return _pearson(one, two, np.ones_like(one))


def correlate_weighted(one: Floats, two: Floats, weights: Floats, kind: Kind) -> Floats:
    """The correlation over heads drawn `weights` times, ``[head]`` twice and ``[draw, head]``.

    >>> one, two, last_twice = np.array([1.0, 2, 3]), np.array([3.0, 1, 3]), np.array([[1.0, 1, 2]])
    >>> correlate_weighted(one, two, last_twice, "pearson").round(3)
    array([0.174])
    """
    if kind == "kendall":
        return _kendall_weighted(one, two, weights)
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


def _kendall(one: Floats, two: Floats) -> Floats:
    """Kendall's tau-b of each row, from the signs of all pairs."""
    left, right = np.triu_indices(one.shape[1], k=1)
    first = np.sign(one[:, left] - one[:, right])
    second = np.sign(two[:, left] - two[:, right])
    pairs, untied_first, untied_second = (
        np.einsum("ij,ij->i", a, b) for a, b in ((first, second), (first, first), (second, second))
    )
    return _over_root(pairs, untied_first * untied_second)


def _kendall_weighted(one: Floats, two: Floats, weights: Floats) -> Floats:
    """The same with heads drawn several times: each sum over pairs is a quadratic form."""
    first, second = np.sign(one[:, None] - one), np.sign(two[:, None] - two)
    pairs, untied_first, untied_second = (
        np.sum((weights @ signs) * weights, axis=1)
        for signs in (first * second, np.abs(first), np.abs(second))
    )
    return _over_root(pairs, untied_first * untied_second)


def _over_root(pairs: Floats, untied: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(untied > 0, pairs / np.sqrt(untied), np.nan)


# --- How far two rankings of the heads agree ----------------------------------------------------


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
    than three heads, give NaN and a note.

    >>> found = rank_agreement([1, 2, 3, 4, 5, 6], [1, 3, 2, 4, 6, 5])
    >>> round(found.value, 3), found.heads
    (0.886, 6)
    """
    one, two = _read_scores(first, second)
    read_choice(kind, "kind of agreement", CORRELATIONS)
    draws, seed = read_count(draws, "draws"), read_seed(seed)
    note = _why_none(one, two, ("first score", "second score"))
    if note:
        return Agreement(np.nan, np.nan, np.nan, len(one), note)
    chunks = resample_weights(len(one), draws, seed)
    drawn = np.concatenate([correlate_weighted(one, two, chunk, kind) for chunk in chunks])
    low, high = _tails(drawn, confidence)
    return Agreement(_value(one, two, kind), low, high, len(one))


def sentence_agreement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    statistic: Statistic = ratio,
    kind: Kind = "spearman",
    *,
    second_statistic: Statistic | None = None,
    same_sentences: bool = True,
    draws: int = DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """The correlation of two scores over heads, with an interval from resampled sentences.

    Statistics are ``[sentence, head, statistic]``. With `same_sentences` both scores meet the same
    resamples; without, as for two corpora, each its own. Noise lowers a correlation, and a resample
    is noisier than the data, so the percentile interval lies too low: this one reaches from there
    to its mirror image. Scores with more noise than spread need more sentences, not an interval.

    >>> rng = np.random.default_rng(0)
    >>> hits = rng.binomial(10, np.linspace(0.1, 0.9, 12), (50, 12))
    >>> statistics = np.stack([hits, np.full_like(hits, 10)], axis=-1)
    >>> round(sentence_agreement(statistics[:25], statistics[25:], same_sentences=False).value, 2)
    0.99
    """
    draws, seed = read_count(draws, "draws"), read_seed(seed)
    read_choice(kind, "kind of agreement", CORRELATIONS)
    one = _read_sample(first, statistic)
    two = _read_sample(second, second_statistic or statistic)
    if same_sentences and one.sentences != two.sentences:
        raise StatsError(
            f"The scores come from {one.sentences:,} and {two.sentences:,} sentences; "
            "give both the same sentences, or say same_sentences=False."
        )
    scores = _read_scores(one.value(), two.value())
    note = _why_none(*scores, ("first score", "second score"))
    if note:
        return Agreement(np.nan, np.nan, np.nan, len(scores[0]), note)
    second_seed = seed if same_sentences else [seed, 1]
    drawn = correlate(replicates(one, draws, seed), replicates(two, draws, second_seed), kind)
    value, (low, high) = _value(*scores, kind), _tails(drawn, confidence)
    low, high = min(low, 2 * value - high), max(high, 2 * value - low)
    return Agreement(value, max(low, -1.0), min(high, 1.0), len(scores[0]))


def agreement_matrix(
    scores: Mapping[str, npt.ArrayLike] | pd.DataFrame,
    kinds: Sequence[Kind] = ("spearman", "kendall", "pearson"),
    *,
    draws: int = DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of named scores, a row each: first, second, kind, value, low, high, heads, note.

    Heads that lack one of the two scores are left out of that pair; `heads` says how many remain.

    >>> frame = agreement_matrix({"gradient": [1, 2, 3, 4], "ablation": [2, 1, 3, 4]}, ["spearman"])
    >>> frame[["first", "second", "kind", "value", "heads"]].values.tolist()
    [['gradient', 'ablation', 'spearman', 0.8, 4]]
    """
    import pandas as pd

    columns = {str(name): np.asarray(x, dtype=np.float64) for name, x in scores.items()}
    rows = []
    for (first, one), (second, two) in combinations(columns.items(), 2):
        both = _both_known(first, one, second, two)
        note = _why_none(one[both], two[both], (first, second))
        for kind in kinds:
            found = rank_agreement(
                one[both], two[both], kind, draws=draws, confidence=confidence, seed=seed
            )
            rows.append((first, second, kind, *found._replace(note=note)))
    return pd.DataFrame(rows, columns=["first", "second", "kind", *Agreement._fields])


def _read_scores(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    one, two = read_finite(first, "first scores"), read_finite(second, "second scores")
    if one.ndim != 1 or one.shape != two.shape:
        raise StatsError(
            f"The scores have shapes {one.shape} and {two.shape}; give two vectors of one length, "
            "with the same heads in the same order."
        )
    return one, two


def _read_sample(statistics: npt.ArrayLike, statistic: Statistic) -> Sample:
    array = read_statistics(statistics)
    if array.ndim != 3:
        raise StatsError(
            f"The statistics have shape {array.shape}; give [sentence, head, statistic]."
        )
    check_statistic(statistic, array)
    return Sample(array, statistic)


def _both_known(first: str, one: Floats, second: str, two: Floats) -> npt.NDArray[np.bool_]:
    if one.shape != two.shape:
        raise StatsError(
            f"The score {first} has {one.size:,} heads and {second} has {two.size:,}; "
            "give every score for the same heads, with NaN where it is not defined."
        )
    return ~(np.isnan(one) | np.isnan(two))


def _why_none(one: Floats, two: Floats, names: tuple[str, str]) -> str:
    """The note where two scores have no correlation, else nothing."""
    if len(one) < 3:
        return f"{len(one)} heads are too few"
    for name, scores in zip(names, (one, two), strict=True):
        if np.ptp(scores) == 0:
            return f"{name} is the same for every head"
    return ""


def _value(one: Floats, two: Floats, kind: Kind) -> float:
    return float(correlate(one[None], two[None], kind)[0])


def _tails(drawn: Floats, confidence: float) -> tuple[float, float]:
    """The ends that cut off a tail each; draws without a correlation are left out."""
    tail = (1 - read_share(confidence, "confidence")) / 2
    ends = quantiles(np.sort(drawn)[:, None], np.array([[tail], [1 - tail]]))
    return float(ends[0, 0]), float(ends[1, 0])
