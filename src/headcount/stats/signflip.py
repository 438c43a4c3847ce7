"""The sign-flip (paired randomisation) test: what if two systems traded places at random?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.stats.corrections import adjust
from headcount.stats.inputs import read_choice, read_count, read_pair, read_seed, read_sentences
from headcount.stats.resample import DRAWS, all_signs, random_signs
from headcount.stats.resolution import ALTERNATIVES, Alternative, Correction, check_resolution
from headcount.stats.results import Floats, PairedTest
from headcount.stats.statistic import Statistic, check_statistic, ratio

__all__ = ["EXACT", "sign_flip", "sign_flip_scores"]

#: Up to this many sentences that differ, all patterns of signs are tried instead of random ones.
EXACT = 16


def sign_flip(
    differences: npt.ArrayLike,
    *,
    draws: int = DRAWS,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> PairedTest:
    """Whether the mean of paired differences ``[sentence, head...]`` is 0.

    Fisher 1935, section 21. Exact where at most 16 sentences differ, else (b+1)/(draws+1) from
    random signs. Draws or sentences too few for the corrected level are refused.

    >>> sign_flip([0.3, 0.1, 0.4, 0.2, 0.5, 0.2, -0.1, 0.6]).p
    np.float64(0.0234375)
    """
    given = read_sentences(differences, "differences")
    flat = given.reshape(len(given), -1, 1)
    swap = _Swap(
        half=flat / 2,
        middle=np.zeros(flat.shape[1:]),
        statistic=lambda sums: sums[..., 0] / len(given),
        tolerance=1e-10 * np.abs(flat).mean(axis=0)[:, 0],
    )
    return _test(swap, given.shape[1:], draws, alternative, correction, level, seed)


def sign_flip_scores(
    statistics: npt.ArrayLike,
    baseline: npt.ArrayLike,
    statistic: Statistic = ratio,
    *,
    draws: int = DRAWS,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> PairedTest:
    """Whether two systems' scores differ, by trading their statistics sentence by sentence.

    Riezler & Maxwell 2005 (approximate randomisation). For ratios such as hits of a head against
    hits of its baseline, and for scores that no mean gives, such as BLEU. The baseline is one
    system for all heads, or one per head.

    >>> head = np.array([[3, 4], [2, 5], [4, 4], [3, 3], [2, 2], [3, 6], [4, 5]])
    >>> offset = np.array([[1, 4], [2, 5], [2, 4], [1, 3], [1, 2], [2, 6], [2, 5]])
    >>> sign_flip_scores(head, offset, alternative="greater").p
    np.float64(0.015625)
    """
    ours, theirs = read_pair(statistics, baseline)
    for system in (ours, theirs):
        check_statistic(statistic, system)
    flat = ours.reshape(len(ours), -1, ours.shape[-1])
    other = np.broadcast_to(theirs, ours.shape).reshape(flat.shape)
    scores = statistic(flat.sum(axis=0)), statistic(other.sum(axis=0))
    swap = _Swap(
        half=(flat - other) / 2,
        middle=(flat + other).sum(axis=0) / 2,
        statistic=statistic,
        tolerance=1e-10 * (np.abs(scores[0]) + np.abs(scores[1])),
    )
    return _test(swap, ours.shape[1:-1], draws, alternative, correction, level, seed)


@dataclass(frozen=True)
class _Swap:
    """Half of what divides two systems, ``[sentence, head, statistic]``, and their middle."""

    half: Floats
    middle: Floats
    statistic: Statistic
    tolerance: Floats

    def score(self, signs: Floats) -> Floats:
        """The difference of scores with signs flipped, ``[draw, head]``."""
        sums = signs @ self.half.reshape(len(self.half), self.middle.size)
        turned = sums.reshape(len(signs), *self.middle.shape)
        return self.statistic(self.middle + turned) - self.statistic(self.middle - turned)

    def differing(self) -> npt.NDArray[np.bool_]:
        """Which sentences differ at all, ``[sentence, head]``."""
        return np.any(self.half != 0, axis=-1)

    def of_heads(self, heads: npt.NDArray[np.intp]) -> _Swap:
        """The same for some of the heads."""
        return _Swap(self.half[:, heads], self.middle[heads], self.statistic, self.tolerance[heads])


def _test(
    swap: _Swap,
    shape: tuple[int, ...],
    draws: int,
    alternative: Alternative,
    correction: Correction,
    level: float,
    seed: int,
) -> PairedTest:
    """The walk both tests share: read, refuse what cannot be answered, flip, correct."""
    read_choice(alternative, "alternative", ALTERNATIVES)
    draws, seed = read_count(draws, "draws"), read_seed(seed)
    sentences = len(swap.half)
    value = swap.score(np.ones((1, sentences)))[0]
    check_resolution(
        tests=max(1, int(np.sum(~np.isnan(value)))),
        draws=draws if sentences > EXACT else None,
        sentences=sentences,
        level=level,
        method=correction,
        alternative=alternative,
    )
    p = _p_values(swap, value, alternative, draws, seed)
    return PairedTest(*(x.reshape(shape)[()] for x in (value, p, adjust(p, correction))))


def _p_values(
    swap: _Swap, value: Floats, alternative: Alternative, draws: int, seed: int
) -> Floats:
    """Exact for heads with few sentences that differ, random for the others."""
    differing = np.sum(swap.differing(), axis=0)
    p = np.ones(len(value))
    for count in np.unique(differing):
        heads = np.flatnonzero(differing == count)
        if count <= EXACT:
            part = _only_differing(swap.of_heads(heads), count)
            p[heads] = _exact(part, value[heads], alternative)
    heads = np.flatnonzero(differing > EXACT)
    if len(heads):
        p[heads] = _random(swap.of_heads(heads), value[heads], alternative, draws, seed)
    return np.where(np.isnan(value), np.nan, p)


def _only_differing(swap: _Swap, count: int) -> _Swap:
    """Each head's own `count` sentences that differ; the others cannot change anything."""
    rows = np.argsort(~swap.differing(), axis=0, kind="stable")[:count, :, None]
    half = np.take_along_axis(swap.half, rows, axis=0)
    return _Swap(half, swap.middle, swap.statistic, swap.tolerance)


def _exact(swap: _Swap, value: Floats, alternative: Alternative) -> Floats:
    signs = all_signs(len(swap.half), columns=swap.middle.size)
    return _as_far(swap, signs, value, alternative) / 2 ** len(swap.half)


def _random(swap: _Swap, value: Floats, alternative: Alternative, draws: int, seed: int) -> Floats:
    signs = random_signs(len(swap.half), draws, seed, columns=swap.middle.size)
    return (_as_far(swap, signs, value, alternative) + 1) / (draws + 1)


def _as_far(
    swap: _Swap, signs: Iterator[Floats], value: Floats, alternative: Alternative
) -> Floats:
    """How many patterns of signs give a difference at least as far out; undefined ones count."""
    found = np.zeros(len(value))
    for chunk in signs:
        flipped = swap.score(chunk)
        if alternative == "two-sided":
            nearer = np.abs(flipped) < np.abs(value) - swap.tolerance
        elif alternative == "greater":
            nearer = flipped < value - swap.tolerance
        else:
            nearer = flipped > value + swap.tolerance
        found += np.count_nonzero(~nearer, axis=0)
    return found
