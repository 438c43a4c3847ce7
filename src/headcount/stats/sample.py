"""What every interval and test shares: reading its input, scores of sums, and resampling.

A system is an array of sufficient statistics ``[sentence, head, statistic]``; its score, e.g.
`ratio` or `bleu`, is a function of their sum, so a resample costs one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError

# --- Results ------------------------------------------------------------------------------------

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int_]


class Interval(NamedTuple):
    """A value with the ends of its interval; NaN where there is nothing to say."""

    value: Floats
    low: Floats
    high: Floats


class PairedTest(NamedTuple):
    """A difference of two systems with its p value, plain and corrected over all heads tested."""

    value: Floats
    p: Floats
    p_adjusted: Floats


class PairedDifference(NamedTuple):
    """A difference of two systems with its interval and its p values."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    p_adjusted: Floats


# --- Reading what the statistics are given ------------------------------------------------------


def read_finite(values: npt.ArrayLike, name: str) -> Floats:
    """An array of numbers in which every number is finite.

    >>> read_finite([1, 2], "differences")
    array([1., 2.])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatsError(f"The {name} cannot be read as an array of numbers: {error}.") from None
    wrong = int(np.count_nonzero(~np.isfinite(array)))
    if wrong:
        raise StatsError(
            f"The {name} hold {wrong:,} of {array.size:,} numbers that are NaN or infinite; "
            "leave those sentences or heads out first."
        )
    return array


def read_sentences(values: npt.ArrayLike, name: str) -> Floats:
    """Finite numbers with at least two rows, one a sentence."""
    array = read_finite(values, name)
    rows = len(array) if array.ndim else 0
    if rows == 0:
        raise StatsError(f"The {name} hold no sentences; give one row a sentence, at least 2.")
    if rows == 1:
        raise StatsError(
            f"The {name} hold one sentence, which says nothing about chance; give at least 2."
        )
    if array.size == 0:
        raise StatsError(f"The {name} have shape {array.shape}: there are no heads to look at.")
    return array


def read_statistics(values: npt.ArrayLike, name: str = "statistics") -> Floats:
    """Sufficient statistics ``[sentence, statistic]`` or ``[sentence, head..., statistic]``."""
    array = read_sentences(values, name)
    if array.ndim < 2:
        raise StatsError(
            f"The {name} have shape {array.shape}; give [sentence, statistic] or "
            "[sentence, head, statistic], e.g. hits and counts in the last axis."
        )
    return array


def read_pair(
    statistics: npt.ArrayLike, baseline: npt.ArrayLike, last_axis: bool = True
) -> tuple[Floats, Floats]:
    """Two systems on the same sentences; the second may be one for all heads of the first."""
    read = read_statistics if last_axis else read_sentences
    ours, theirs = read(statistics, "statistics"), read(baseline, "baseline")
    if len(ours) != len(theirs):
        raise StatsError(
            f"The two systems have {len(ours):,} and {len(theirs):,} sentences; "
            "a paired test needs the same sentences in the same order."
        )
    head_axes = (1,) * (ours.ndim - 1 - last_axis)
    if theirs.ndim == 1 + last_axis:
        theirs = theirs.reshape(theirs.shape[:1] + head_axes + theirs.shape[1:])
    for_all_heads = ours.shape[:1] + head_axes + ours.shape[ours.ndim - last_axis :]
    if theirs.shape not in (ours.shape, for_all_heads):
        raise StatsError(
            f"The systems have shapes {ours.shape} and {np.shape(baseline)}; give the baseline the "
            "same shape, or leave its head axes out to compare every head with one baseline."
        )
    return ours, theirs


def read_seed(seed: object) -> int:
    """A whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise StatsError(f"The seed is {seed!r}; give a whole number of 0 or more.")
    return int(seed)


def read_count(value: object, name: str, least: int = 1) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise StatsError(f"The number of {name} is {value!r}; give a whole number from {least} up.")
    return int(value)


def read_share(value: float, name: str) -> float:
    """A number strictly between 0 and 1."""
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise StatsError(f"The {name} is {value!r}; give a number between 0 and 1, e.g. 0.05.")
    return float(value)


def read_choice(value: str, name: str, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise StatsError(f"There is no {name} {value!r}; choose one of {', '.join(words)}.")
    return value


# --- Scores as functions of summed sufficient statistics ----------------------------------------
# Any function of that shape will do; these are the ones every part of the toolkit needs.

Statistic = Callable[[Floats], Floats]
#: A score that no sum gives: of statistics ``[sentence, statistic]``, each sentence drawn so many
#: times, ``[draw, sentence]`` to ``[draw]``.
Redrawn = Callable[[Floats, Floats], Floats]


def ratio(sums: Floats) -> Floats:
    """A ratio of sums, (hits, counts): hits / counts, NaN where nothing was counted.

    >>> ratio(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([0.75,  nan])
    """
    if sums.shape[-1] != 2:
        raise StatsError(
            f"A ratio is made of 2 statistics, hits and counts, not of {sums.shape[-1]}."
        )
    hits, counts = sums[..., 0], sums[..., 1]
    # Sums of fractions that cancel may round to just below 0; a real count is not that small.
    if np.any(counts < 0) and counts.min() < -1e-9 * np.abs(counts).max():
        raise StatsError(
            f"A count is {counts.min():g}; the second statistic of a ratio counts things, "
            "so it is never below 0."
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0, hits / counts, np.nan)


def bleu(sums: Floats) -> Floats:
    """Corpus BLEU, 0 to 100, of (lengths of output and reference, 4 matches, 4 totals).

    Papineni et al. 2002, section 2.3; zero matches are smoothed as mteval-v13a and sacreBLEU do.

    >>> bleu(np.array([9.0, 10, 9, 6, 4, 2, 9, 8, 7, 6])).round(2)
    np.float64(55.01)
    """
    if sums.shape[-1] != 10:
        raise StatsError(f"BLEU is made of 10 statistics, not of {sums.shape[-1]}.")
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2:6], sums[..., 6:10]
    misses = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**misses, matches)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.exp(np.log(smoothed / totals).mean(axis=-1))
        score = 100 * precision * np.exp(np.minimum(0.0, 1 - reference / length))
    seen = np.all(totals > 0, axis=-1) & np.any(matches > 0, axis=-1)
    return np.where(seen, score, 0.0)[()]


def check_statistic(statistic: Statistic | None, statistics: Floats) -> None:
    """Try the function on each sentence alone: what is wrong shows before the draws.

    >>> check_statistic(lambda sums: sums.sum(), np.ones((5, 3, 2)))
    Traceback (most recent call last):
    headcount.errors.StatsError: The statistic turns sums of shape (5, 3, 2) into (); it must drop
    the last axis and keep the others: (5, 3).
    """
    shape = statistics.shape[:-1] if statistic is None else np.shape(statistic(statistics))
    if shape != statistics.shape[:-1]:
        raise StatsError(
            f"The statistic turns sums of shape {statistics.shape} into {shape}; it must drop the "
            f"last axis and keep the others: {statistics.shape[:-1]}."
        )


# --- Random resamples and signs in chunks of bounded memory -------------------------------------
# The stream depends on the seed and the number of sentences alone, not on the heads or the chunks,
# so that every head and every system meets the same resamples.

#: Enough for Holm over 1,000 heads at level 0.05.
DRAWS = 20_000


def resample_weights(
    sentences: int, draws: int, seed: int | list[int], columns: int = 1
) -> Iterator[Floats]:
    """How often each sentence is drawn, ``[draw, sentence]``, chunk after chunk.

    >>> [chunk.sum(axis=1).tolist() for chunk in resample_weights(5, draws=3, seed=0)]
    [[5.0, 5.0, 5.0]]
    """
    rng = np.random.default_rng(seed)
    for rows in _chunks(sentences, draws, columns):
        picks = rng.integers(0, sentences, (rows, sentences))
        picks += np.arange(rows)[:, None] * sentences
        counts = np.bincount(picks.ravel(), minlength=rows * sentences)
        yield counts.reshape(rows, sentences).astype(np.float64)


def random_signs(sentences: int, draws: int, seed: int, columns: int = 1) -> Iterator[Floats]:
    """A random +1 or -1 for each sentence, ``[draw, sentence]``, chunk after chunk."""
    rng = np.random.default_rng(seed)
    words = -(-sentences // 64)
    for rows in _chunks(sentences, draws, columns):
        # Whole 64-bit words, so that cutting the draws into other chunks leaves the stream alone.
        drawn = rng.integers(0, 2**64, (rows, words), dtype=np.uint64)
        bits = np.unpackbits(drawn.view(np.uint8), axis=1, count=sentences)
        yield 1.0 - 2.0 * bits.astype(np.float64)


def all_signs(sentences: int, columns: int = 1) -> Iterator[Floats]:
    """Every pattern of signs once, ``[pattern, sentence]``, chunk after chunk.

    >>> np.concatenate(list(all_signs(2))).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    start = 0
    for rows in _chunks(max(sentences, 1), 2**sentences, columns):
        bits = np.arange(start, start + rows)[:, None] >> np.arange(sentences) & 1
        yield 1.0 - 2.0 * bits.astype(np.float64)
        start += rows


def _chunks(sentences: int, draws: int, columns: int) -> Iterator[int]:
    """Sizes that add up to the draws: small for the cache, yet enough for a matrix product."""
    cached = max(64, 2**18 // sentences)
    rows = max(1, min(cached, 2**24 // sentences, 2**22 // columns))
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


# --- Statistics that can be scored on any resample ----------------------------------------------


@dataclass(frozen=True)
class Sample:
    """One system: statistics ``[sentence, head, statistic]`` and the score of their sum."""

    statistics: Floats
    statistic: Statistic | None
    redrawn: Redrawn | None = None

    @property
    def sentences(self) -> int:
        """How many sentences there are to draw."""
        return len(self.statistics)

    @property
    def columns(self) -> int:
        """How many sums one draw makes."""
        return self.statistics.shape[1] * self.statistics.shape[2]

    def value(self) -> Floats:
        """The scores on the sentences as they are, ``[head]``."""
        if self.statistic is None:
            return self.resampled(np.ones((1, self.sentences)))[0]
        return self.statistic(self.statistics.sum(axis=0))

    def present(self) -> npt.NDArray[np.bool_]:
        """Whether a sentence has anything to count for a head, ``[sentence, head]``."""
        return np.any(self.statistics != 0, axis=-1)

    def seen(self) -> Counts:
        """In how many sentences each head has anything to count, ``[head]``."""
        return np.sum(self.present(), axis=0)

    def heads(self, block: slice) -> Sample:
        """The same for some of the heads; one system for all heads goes along whole."""
        if self.statistics.shape[1] == 1:
            return self
        return replace(self, statistics=self.statistics[:, block])

    def resampled(self, weights: Floats) -> Floats:
        """The scores with sentences weighted, ``[draw, head]``."""
        if self.statistic is None:
            assert self.redrawn is not None  # or there would be no way to score
            systems = np.moveaxis(self.statistics, 1, 0)
            return np.stack([self.redrawn(one, weights) for one in systems], axis=1)
        sums = weights @ self.statistics.reshape(self.sentences, -1)
        return self.statistic(sums.reshape(len(weights), *self.statistics.shape[1:]))


@dataclass(frozen=True)
class Contrast:
    """Two systems on the same sentences: the first's score minus the second's."""

    ours: Sample
    theirs: Sample

    @property
    def sentences(self) -> int:
        """How many sentences there are to draw."""
        return self.ours.sentences

    @property
    def columns(self) -> int:
        """How many sums one draw makes."""
        return self.ours.columns + self.theirs.columns

    def value(self) -> Floats:
        """The differences on the sentences as they are, ``[head]``."""
        return self.ours.value() - self.theirs.value()

    def seen(self) -> Counts:
        """In how many sentences either system has anything to count, ``[head]``."""
        return np.sum(self.ours.present() | self.theirs.present(), axis=0)

    def heads(self, block: slice) -> Contrast:
        """The same for some of the heads."""
        return Contrast(self.ours.heads(block), self.theirs.heads(block))

    def resampled(self, weights: Floats) -> Floats:
        """The differences with sentences weighted, the same for both systems."""
        return self.ours.resampled(weights) - self.theirs.resampled(weights)

    def tolerance(self) -> Floats:
        """Two differences closer than this are a tie: sums in another order round otherwise."""
        return 1e-10 * (np.abs(self.ours.value()) + np.abs(self.theirs.value()))


def replicates(scored: Sample | Contrast, draws: int, seed: int | list[int]) -> Floats:
    """The scores on many resamples of the sentences, ``[draw, head]``.

    >>> counts = np.array([[[1.0]], [[3.0]]])
    >>> total = Sample(counts, lambda sums: sums[..., 0])
    >>> sorted(set(replicates(total, draws=50, seed=0)[:, 0].tolist()))
    [2.0, 4.0, 6.0]
    """
    chunks = resample_weights(scored.sentences, draws, seed, scored.columns)
    return np.concatenate([scored.resampled(weights) for weights in chunks])
