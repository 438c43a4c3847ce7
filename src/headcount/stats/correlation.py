"""Spearman, Kendall and Pearson for many draws at once, row by row or with heads weighted."""

from __future__ import annotations

from typing import Literal

import numpy as np

from headcount.stats.results import Floats

__all__ = ["CORRELATIONS", "Kind", "correlate", "correlate_weighted"]

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
