"""How far two rankings of the heads agree, and whether some heads rank above others.

Spearman 1904, Kendall 1945 (tau-b, which allows for ties) and Pearson, each also over heads that a
bootstrap draws several times; Cliff's delta (Cliff 1993) within strata, with a permutation test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats import sample as sampling
from headcount.stats.bootstrap import quantiles

if TYPE_CHECKING:
    import pandas as pd

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
    draws: int = sampling.DRAWS,
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
        sampling.read_finite(first, "first scores"),
        sampling.read_finite(second, "second scores"),
    )
    if one.ndim != 1 or one.shape != two.shape:
        raise StatsError(
            f"The scores have shapes {one.shape} and {two.shape}; give two vectors of one length, "
            "with the same heads in the same order."
        )
    sampling.read_choice(kind, "kind of agreement", CORRELATIONS)
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
    note = _why_none(one, two, ("first score", "second score"))
    if note:
        return Agreement(np.nan, np.nan, np.nan, len(one), note)
    chunks = sampling.resample_weights(len(one), draws, seed)
    drawn = np.concatenate([correlate_weighted(one, two, chunk, kind) for chunk in chunks])
    tail = (1 - sampling.read_share(confidence, "confidence")) / 2
    low, high = quantiles(np.sort(drawn)[:, None], np.array([[tail], [1 - tail]]))[:, 0]
    value = correlate_weighted(one, two, np.ones((1, len(one))), kind)[0]
    return Agreement(float(value), float(low), float(high), len(one))


def agreement_matrix(
    scores: Mapping[str, npt.ArrayLike] | pd.DataFrame,
    kinds: Sequence[Kind] = CORRELATIONS,
    *,
    draws: int = sampling.DRAWS,
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
        if one.shape != two.shape:
            raise StatsError(
                f"The score {first} has {one.size:,} heads and {second} has {two.size:,}; "
                "give every score for the same heads, with NaN where it is not defined."
            )
        both = ~(np.isnan(one) | np.isnan(two))
        note = _why_none(one[both], two[both], (first, second))
        for kind in kinds:
            found = rank_agreement(
                one[both], two[both], kind, draws=draws, confidence=confidence, seed=seed
            )
            rows.append((first, second, kind, *found._replace(note=note)))
    return pd.DataFrame(rows, columns=["first", "second", "kind", *Agreement._fields])


def _why_none(one: sampling.Floats, two: sampling.Floats, names: tuple[str, str]) -> str:
    """The note where two scores have no correlation, else nothing."""
    if len(one) < 3:
        return f"{len(one)} heads are too few"
    for name, scores in zip(names, (one, two), strict=True):
        if np.ptp(scores) == 0:
            return f"{name} is the same for every head"
    return ""


def correlate_weighted(
    one: sampling.Floats, two: sampling.Floats, weights: sampling.Floats, kind: Kind
) -> sampling.Floats:
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


def _pearson(
    one: sampling.Floats, two: sampling.Floats, weights: sampling.Floats
) -> sampling.Floats:
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


def _weighted_ranks(scores: sampling.Floats, weights: sampling.Floats) -> sampling.Floats:
    """The mean rank of each head among heads drawn `weights` times; equal scores share theirs."""
    order = np.argsort(scores, kind="stable")
    begins = np.diff(scores[order], prepend=-np.inf) > 0  # a new score, not a tie
    sizes = np.add.reduceat(weights[:, order], np.flatnonzero(begins), axis=1)
    ranks = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    group = np.empty(len(scores), dtype=np.intp)
    group[order] = np.cumsum(begins) - 1
    return ranks[:, group]


def _kendall(
    one: sampling.Floats, two: sampling.Floats, weights: sampling.Floats
) -> sampling.Floats:
    """Kendall's tau-b: with heads drawn several times, each sum over pairs is a quadratic form."""
    first, second = np.sign(one[:, None] - one), np.sign(two[:, None] - two)
    pairs, untied_first, untied_second = (
        np.sum((weights @ signs) * weights, axis=1)
        for signs in (first * second, np.abs(first), np.abs(second))
    )
    untied = untied_first * untied_second
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(untied > 0, pairs / np.sqrt(untied), np.nan)


# --- Do some heads rank above others of the same layer? -----------------------------------------


class RankDifference(NamedTuple):
    """Cliff's delta of members against others of the same strata, its interval and its test.

    A member ranks above another head of its stratum with probability (1 + value) / 2.
    """

    value: float
    low: float
    high: float
    p: float
    #: Members and others in strata that have both; the others can say nothing.
    members: int
    others: int
    strata: int
    #: The smallest p that so few heads can give; NaN where there is nothing to compare.
    floor: float


def rank_difference(
    scores: npt.ArrayLike,
    members: npt.ArrayLike,
    strata: Sequence[object],
    *,
    draws: int = sampling.DRAWS,
    confidence: float = 0.95,
    seed: int = 0,
) -> RankDifference:
    """Whether members score higher than other heads of the same stratum, two-sided.

    Cliff's delta over all pairs of a member and another head that share a stratum, e.g. a layer of
    a stack. The test shuffles who is a member within each stratum; the interval resamples heads.
    Heads without a score, and strata without both kinds, are left out.

    >>> found = rank_difference([5, 1, 2, 6, 3, 1], [1, 0, 0, 1, 0, 0], "aaabbb")
    >>> found.value, round(found.floor, 3), found.members, found.others
    (1.0, 0.222, 2, 4)
    """
    values, chosen = np.asarray(scores, dtype=np.float64), np.asarray(members, dtype=bool)
    groups = np.unique([str(one) for one in strata], return_inverse=True)[1]
    if not values.shape == chosen.shape == groups.shape:
        raise StatsError(
            f"There are {values.size} scores, {chosen.size} marks of members and {groups.size} "
            "strata; give one of each for every head."
        )
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
    there = ~np.isnan(values)
    both = [
        np.flatnonzero((groups == group) & there)
        for group in range(groups.max(initial=-1) + 1)
        if 0 < chosen[(groups == group) & there].sum() < ((groups == group) & there).sum()
    ]
    if not both:
        return RankDifference(np.nan, np.nan, np.nan, np.nan, 0, 0, 0, np.nan)
    rows = np.concatenate(both)
    values, chosen, groups = values[rows], chosen[rows], groups[rows]
    # Who ranks above whom in a stratum; pairs of two members cancel out, and so do two others.
    above = np.sign(values[:, None] - values) * (groups[:, None] == groups)
    same = (groups[:, None] == groups).astype(np.float64)
    pairs = float(chosen @ same @ ~chosen)
    value = float(chosen @ above @ ~chosen) / pairs
    shuffled = np.abs(_shuffled(above.sum(axis=1), chosen, groups, draws, seed)) / pairs
    as_far = np.count_nonzero(shuffled >= abs(value) - 1e-12)
    low, high = _resampled(above, chosen, groups, draws, confidence, seed)
    sizes = [(groups == group, chosen[groups == group].sum()) for group in np.unique(groups)]
    ways = math.prod(math.comb(int(own.sum()), int(count)) for own, count in sizes)
    smallest = max(min(1.0, 2 / ways), 1 / (draws + 1))
    return RankDifference(
        value, low, high, (as_far + 1) / (draws + 1),
        int(chosen.sum()), int((~chosen).sum()), len(both), smallest,
    )  # fmt: skip


def _shuffled(
    lead: sampling.Floats, chosen: np.ndarray, groups: np.ndarray, draws: int, seed: int
) -> sampling.Floats:
    """The sum of leads of members drawn anew within each stratum, ``[draw]``."""
    random, total = np.random.default_rng(seed), np.zeros(draws)
    for group in np.unique(groups):
        own = groups == group
        keys = random.random((draws, int(own.sum())))
        drawn = np.argpartition(keys, int(chosen[own].sum()) - 1, axis=1)
        total += lead[own][drawn[:, : int(chosen[own].sum())]].sum(axis=1)
    return total


def _resampled(
    above: sampling.Floats,
    chosen: np.ndarray,
    groups: np.ndarray,
    draws: int,
    confidence: float,
    seed: int,
) -> tuple[float, float]:
    """The percentile interval of delta over heads drawn again; draws without a pair go."""
    same = (groups[:, None] == groups).astype(np.float64)
    found = []
    for weights in sampling.resample_weights(len(chosen), draws, seed):
        ours, others = weights * chosen, weights * ~chosen
        pairs = ((ours @ same) * others).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.where(pairs > 0, ((ours @ above) * others).sum(axis=1) / pairs, np.nan))
    tail = (1 - sampling.read_share(confidence, "confidence")) / 2
    ends = np.array([[tail], [1 - tail]])
    low, high = quantiles(np.sort(np.concatenate(found))[:, None], ends)[:, 0]
    return float(low), float(high)
