"""Paired tests and intervals: does a system differ from its baseline on the same sentences?

The sign-flip test (Fisher 1935), also of scores that are no means (Riezler & Maxwell 2005) and in
closed form for counts; McNemar's exact test and an interval for accuracies; and the t test of a
ratio against a known value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtri, stdtr, stdtrit

from headcount.errors import StatsError
from headcount.stats import sample as sampling
from headcount.stats.bootstrap import ratio_interval
from headcount.stats.corrections import (
    ALTERNATIVES,
    Alternative,
    Correction,
    adjust,
    check_resolution,
    count_as_far,
)

# --- The sign-flip (paired randomisation) test --------------------------------------------------

#: Up to this many sentences that differ, all patterns of signs are tried instead of random ones.
EXACT = 16


def sign_flip(
    differences: npt.ArrayLike,
    *,
    draws: int = sampling.DRAWS,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> sampling.PairedTest:
    """Whether the mean of paired differences ``[sentence, head...]`` is 0.

    Fisher 1935, section 21. Exact where at most 16 sentences differ, else (b+1)/(draws+1) from
    random signs. Draws or sentences too few for the corrected level are refused.

    >>> sign_flip([0.3, 0.1, 0.4, 0.2, 0.5, 0.2, -0.1, 0.6]).p
    np.float64(0.0234375)
    """
    given = sampling.read_sentences(differences, "differences")
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
    statistic: sampling.Statistic = sampling.ratio,
    *,
    draws: int = sampling.DRAWS,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    level: float = 0.05,
    seed: int = 0,
) -> sampling.PairedTest:
    """Whether two systems' scores differ, by trading their statistics sentence by sentence.

    Riezler & Maxwell 2005 (approximate randomisation). For ratios such as hits of a head against
    hits of its baseline, and for scores that no mean gives, such as BLEU. The baseline is one
    system for all heads, or one per head.

    >>> head = np.array([[3, 4], [2, 5], [4, 4], [3, 3], [2, 2], [3, 6], [4, 5]])
    >>> offset = np.array([[1, 4], [2, 5], [2, 4], [1, 3], [1, 2], [2, 6], [2, 5]])
    >>> sign_flip_scores(head, offset, alternative="greater").p
    np.float64(0.015625)
    """
    ours, theirs = sampling.read_pair(statistics, baseline)
    for system in (ours, theirs):
        sampling.check_statistic(statistic, system)
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

    half: sampling.Floats
    middle: sampling.Floats
    statistic: sampling.Statistic
    tolerance: sampling.Floats

    def score(self, signs: sampling.Floats) -> sampling.Floats:
        """The difference of scores with signs flipped, ``[draw, head]``."""
        sums = signs @ self.half.reshape(len(self.half), self.middle.size)
        turned = sums.reshape(len(signs), *self.middle.shape)
        return self.statistic(self.middle + turned) - self.statistic(self.middle - turned)

    def of_heads(self, heads: npt.NDArray[np.intp], most: int) -> _Swap:
        """Some of the heads with `most` sentences each: those that differ, which alone count."""
        half = self.half[:, heads]
        if most < len(half):
            same = np.all(half == 0, axis=-1)
            rows = np.argsort(same, axis=0, kind="stable")[:most, :, None]
            half = np.take_along_axis(half, rows, axis=0)
        return _Swap(half, self.middle[heads], self.statistic, self.tolerance[heads])


def _test(
    swap: _Swap,
    shape: tuple[int, ...],
    draws: int,
    alternative: Alternative,
    correction: Correction,
    level: float,
    seed: int,
) -> sampling.PairedTest:
    """The walk both tests share: read, refuse what cannot be answered, flip, correct."""
    sampling.read_choice(alternative, "alternative", ALTERNATIVES)
    draws, seed = sampling.read_count(draws, "draws"), sampling.read_seed(seed)
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
    return sampling.PairedTest(*(x.reshape(shape)[()] for x in (value, p, adjust(p, correction))))


def _p_values(
    swap: _Swap, value: sampling.Floats, alternative: Alternative, draws: int, seed: int
) -> sampling.Floats:
    """Exact for heads with few sentences that differ, random for the others."""
    differing = np.count_nonzero(np.any(swap.half != 0, axis=-1), axis=0)
    kept = np.where(differing <= EXACT, differing, len(swap.half))
    p = np.ones(len(value))
    for count in np.unique(kept):
        heads = np.flatnonzero(kept == count)
        exact = differing[heads[0]] <= EXACT
        part = swap.of_heads(heads, count)
        size = part.middle.size
        signs = (
            sampling.all_signs(count, size)
            if exact
            else sampling.random_signs(count, draws, seed, size)
        )
        far = sum(
            count_as_far(part.score(chunk), value[heads], part.tolerance, alternative)
            for chunk in signs
        )
        p[heads] = far / 2**count if exact else (far + 1) / (draws + 1)
    return np.where(np.isnan(value), np.nan, p)


# --- Paired accuracies --------------------------------------------------------------------------


def mcnemar(
    correct: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    correction: Correction = "holm",
    level: float = 0.05,
) -> sampling.PairedTest:
    """Whether two accuracies differ, from outcomes ``[example, head...]`` right (1) or wrong (0).

    McNemar 1947, in its exact form: the binomial test of the examples on which the two disagree.

    >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1]).p
    np.float64(0.03125)
    """
    ours, theirs = sampling.read_pair(
        _right_or_wrong(correct), _right_or_wrong(baseline), last_axis=False
    )
    wins = np.count_nonzero(ours > theirs, axis=0)
    losses = np.count_nonzero(ours < theirs, axis=0)
    check_resolution(
        tests=max(1, np.size(wins)), sentences=len(ours), level=level, method=correction
    )
    # The binomial test at 1/2, where both tails together are twice the smaller.
    fewer = np.minimum(wins, losses)
    p = np.minimum(np.asarray(2 * bdtr(fewer, wins + losses, 0.5)), 1.0)
    value = (wins - losses) / len(ours)
    return sampling.PairedTest(np.asarray(value)[()], p[()], adjust(p, correction)[()])


def _right_or_wrong(values: npt.ArrayLike) -> sampling.Floats:
    array = sampling.read_finite(values, "outcomes")
    if not np.all((array == 0) | (array == 1)):
        raise StatsError(
            "An outcome is neither 0 (wrong) nor 1 (right); McNemar's test takes these."
        )
    return array


def paired_share_interval(
    correct: npt.ArrayLike, baseline: npt.ArrayLike, *, confidence: float = 0.95
) -> sampling.Interval:
    """The difference of two accuracies, from outcomes ``[example, head...]`` right or wrong.

    Bonett & Price 2012 (adjusted Wald): one example is added to each kind of disagreement. The
    bootstrap would be sure of no difference wherever no example differs, however few there are.

    >>> found = paired_share_interval(np.ones(200), np.ones(200), confidence=0.9)
    >>> [round(float(number), 4) for number in found]
    [0.0, -0.0115, 0.0115]
    """
    ours, theirs = sampling.read_pair(correct, baseline, last_axis=False)
    n = len(ours)
    better = (np.count_nonzero(ours > theirs, axis=0) + 1) / (n + 2)
    worse = (np.count_nonzero(ours < theirs, axis=0) + 1) / (n + 2)
    z = float(ndtri((1 + sampling.read_share(confidence, "confidence")) / 2))
    middle = better - worse
    width = z * np.sqrt((better + worse - middle**2) / (n + 2))
    value = np.mean(ours - theirs, axis=0)
    low, high = np.maximum(middle - width, -1.0), np.minimum(middle + width, 1.0)
    return sampling.Interval(np.asarray(value)[()], np.asarray(low)[()], np.asarray(high)[()])


# --- Whether a ratio of sums over sentences lies above a known value ----------------------------

#: Two values closer than this are a tie: sums in another order round otherwise.
_TIE = 1e-12


def ratio_test(
    x: npt.ArrayLike,
    n: npt.ArrayLike,
    xx: npt.ArrayLike,
    xn: npt.ArrayLike,
    nn: npt.ArrayLike,
    sentences: npt.ArrayLike,
    null: npt.ArrayLike = 0.0,
) -> sampling.Floats:
    """One-sided p of "Σx / Σn is at most `null`", sentences being the unit.

    Student's t on the delta method's error (Cochran 1977, section 2.11), never below 2^-sentences:
    so often would sentences that all lie above have done so by mere signs. NaN where the ratio is
    undefined or fewer than two sentences were seen.

    >>> x, n = np.array([3.0, 2, 4, 1]), np.array([4.0, 5, 4, 3])
    >>> round(float(ratio_test(x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x), null=0.4)), 3)
    0.12
    """
    value, low, _ = ratio_interval(x, n, xx, xn, nn, sentences, confidence=0.5)
    rows = np.broadcast_to(np.asarray(sentences, dtype=np.float64), value.shape)
    degrees = np.maximum(rows - 1, 1)
    # Half of a 50% interval is t(0.75) errors wide.
    error = (value - low) / stdtrit(degrees, 0.75)
    away = value - np.asarray(null, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(np.abs(away) <= _TIE, 0.0, away / error)
    p = np.maximum(stdtr(degrees, -t), 0.5 ** np.minimum(rows, 1000))
    return np.where(np.isnan(value) | (rows < 2), np.nan, p)[()]
