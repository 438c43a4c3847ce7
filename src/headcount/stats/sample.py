"""Statistics that can be scored on any resample: one system, or the difference of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headcount.stats.resample import resample_weights
from headcount.stats.results import Counts, Floats
from headcount.stats.statistic import Statistic

__all__ = ["Contrast", "Sample", "Scored", "replicates"]


class Scored(Protocol):
    """What a bootstrap needs to know of the thing it resamples."""

    @property
    def sentences(self) -> int:
        """How many sentences there are to draw."""

    @property
    def columns(self) -> int:
        """How many numbers one draw makes on its way."""

    def value(self) -> Floats:
        """The scores on the sentences as they are, ``[head]``."""

    def seen(self) -> Counts:
        """In how many sentences each head has anything to count, ``[head]``."""

    def resampled(self, weights: Floats) -> Floats:
        """The scores with sentences weighted, ``[draw, head]``."""

    def without_each(self) -> Floats:
        """The scores with each sentence left out in turn, ``[sentence, head]``."""


@dataclass(frozen=True)
class Sample:
    """One system: statistics ``[sentence, head, statistic]`` and the score of their sum."""

    statistics: Floats
    statistic: Statistic

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
        return self.statistic(self.statistics.sum(axis=0))

    def present(self) -> npt.NDArray[np.bool_]:
        """Whether a sentence has anything to count for a head, ``[sentence, head]``."""
        return np.any(self.statistics != 0, axis=-1)

    def seen(self) -> Counts:
        """In how many sentences each head has anything to count, ``[head]``."""
        return np.sum(self.present(), axis=0)

    def resampled(self, weights: Floats) -> Floats:
        """The scores with sentences weighted, ``[draw, head]``."""
        sums = weights @ self.statistics.reshape(self.sentences, -1)
        return self.statistic(sums.reshape(len(weights), *self.statistics.shape[1:]))

    def without_each(self) -> Floats:
        """The scores with each sentence left out in turn, ``[sentence, head]``."""
        return self.statistic(self.statistics.sum(axis=0) - self.statistics)


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

    def resampled(self, weights: Floats) -> Floats:
        """The differences with sentences weighted, the same for both systems."""
        return self.ours.resampled(weights) - self.theirs.resampled(weights)

    def without_each(self) -> Floats:
        """The differences with each sentence left out in turn, ``[sentence, head]``."""
        return self.ours.without_each() - self.theirs.without_each()

    def tolerance(self) -> Floats:
        """Two differences closer than this are a tie: sums in another order round otherwise."""
        return 1e-10 * (np.abs(self.ours.value()) + np.abs(self.theirs.value()))


def replicates(scored: Scored, draws: int, seed: int | list[int]) -> Floats:
    """The scores on many resamples of the sentences, ``[draw, head]``.

    >>> counts = np.array([[[1.0]], [[3.0]]])
    >>> total = Sample(counts, lambda sums: sums[..., 0])
    >>> sorted(set(replicates(total, draws=50, seed=0)[:, 0].tolist()))
    [2.0, 4.0, 6.0]
    """
    chunks = resample_weights(scored.sentences, draws, seed, scored.columns)
    return np.concatenate([scored.resampled(weights) for weights in chunks])
