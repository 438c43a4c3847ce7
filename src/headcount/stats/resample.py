"""Random resamples and signs in chunks of bounded memory: never a Python loop over draws.

The stream depends on the seed and the number of sentences alone, not on the heads or the chunks,
so that every head and every system meets the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headcount.stats.results import Floats

__all__ = ["DRAWS", "all_signs", "random_signs", "resample_weights"]

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
