"""Which source token a target token translates, learnt from the pairs alone.

Brown et al. 1993, IBM Model 1: word translation probabilities by expectation maximisation, here
with the sparse Dirichlet prior of Riley & Gildea 2012, which keeps rare words from collecting
links. Places play no part (as they do in fast_align), since the diagonal is the baseline that
the heads are held against. It is run in both directions, and only the links of which both are
sure are kept: fewer, and the more to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from headcount.stats.results import Counts, Floats

__all__ = ["Aligner", "Ids", "Links"]

#: A source's and a target's token ids.
Ids = tuple[Sequence[int], Sequence[int]]
#: (target place, source place), at most one for each token of either side.
Links = list[tuple[int, int]]

_NOTHING = -1


@dataclass(frozen=True)
class Aligner:
    """Learns from pairs and links them.

    >>> pairs = [([1, 2], [7, 8]), ([2, 3], [9, 8]), ([3, 1], [7, 9]), ([2], [8])]
    >>> Aligner()(pairs)[1]
    [(0, 1), (1, 0)]
    """

    iterations: int = 10
    #: How much of a token a link must explain, in both directions.
    sure: float = 0.8
    #: The chance that a token translates nothing.
    nothing: float = 0.08
    #: The weight of the prior.
    sparse: float = 0.01

    def __call__(self, pairs: Sequence[Ids]) -> list[Links]:
        """The links of every pair of which both directions are sure, by target place."""
        there = self._one_way(pairs)
        back = self._one_way([(target, source) for source, target in pairs])
        return [
            [(place, found[place]) for place in sorted(found) if other.get(found[place]) == place]
            for found, other in zip(there, back, strict=True)
        ]

    def _one_way(self, pairs: Sequence[Ids]) -> list[dict[int, int]]:
        """For each pair, target place to the source place that it surely translates."""
        cells = _cells(pairs, self.nothing)
        for _ in range(self.iterations):
            cells.learn(self.sparse)
        found: list[dict[int, int]] = [{} for _ in pairs]
        for pair, target, source in cells.sure(self.sure):
            found[pair][target] = source
        return found


@dataclass
class _Cells:
    """Every (target token, source token) of every pair, one after another."""

    pair: Counts
    target: Counts
    #: The source place; `_NOTHING` where a target token translates nothing.
    source: Counts
    #: Which target token of which pair a cell belongs to.
    group: Counts
    #: Which kind of (source id, target id), and the source id of each kind, numbered from 0.
    kind: Counts
    source_of_kind: Counts
    prior: Floats
    translation: Floats

    def shares(self) -> Floats:
        """How much of its target token each cell explains."""
        weight = self.translation[self.kind] * self.prior
        shared: Floats = weight / np.bincount(self.group, weight)[self.group]
        return shared

    def learn(self, sparse: float) -> None:
        """One round: expected counts of each kind, then the translations they give."""
        counts = np.bincount(self.kind, self.shares(), len(self.translation)) + sparse
        totals = np.bincount(self.source_of_kind, counts)[self.source_of_kind]
        self.translation = np.exp(digamma(counts) - digamma(totals))

    def sure(self, least: float) -> Iterator[tuple[int, int, int]]:
        """Pair, target place and source place of every cell that explains enough."""
        chosen = np.flatnonzero((self.shares() > least) & (self.source != _NOTHING))
        places = (self.pair[chosen], self.target[chosen], self.source[chosen])
        return zip(*(part.tolist() for part in places), strict=True)


def _cells(pairs: Sequence[Ids], nothing: float) -> _Cells:
    """The cells before anything is learnt: every translation is as likely as any other."""
    blocks = [_block(number, *pair) for number, pair in enumerate(pairs) if all(map(len, pair))]
    pair, target, source, ids, words, width = np.concatenate([np.zeros((6, 0), int), *blocks], 1)
    kinds, kind = np.unique((ids + 1) * (words.max(initial=0) + 1) + words, return_inverse=True)
    sources = kinds // (words.max(initial=0) + 1)
    return _Cells(
        pair=pair,
        target=target,
        source=source,
        group=np.cumsum(source == _NOTHING) - 1,  # every target token's cells begin with it
        kind=kind,
        source_of_kind=np.unique(sources, return_inverse=True)[1],
        prior=np.where(source == _NOTHING, nothing, (1 - nothing) / np.maximum(width, 1)),
        translation=np.ones(len(kinds)),
    )


def _block(number: int, source: Sequence[int], target: Sequence[int]) -> Counts:
    """One pair's cells: pair, target place, source place, source id, target id, source length."""
    rows, columns = len(target), len(source)
    places, ids = np.arange(-1, columns), np.array([_NOTHING, *source])
    return np.stack(
        [
            np.full(rows * (columns + 1), number),
            np.repeat(np.arange(rows), columns + 1),
            np.tile(places, rows),
            np.tile(ids, rows),
            np.repeat(np.asarray(target), columns + 1),
            np.full(rows * (columns + 1), columns),
        ]
    )
