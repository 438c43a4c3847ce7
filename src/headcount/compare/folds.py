"""Columns of two models on the same texts, and how sure their difference is.

Texts go to folds in turn; every fold has tallies of its own for both models. What is said of all
folds but one, for each of them, gives the interval of a difference (a jackknife over groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount.heads import Head
from headcount.models.anatomy import Anatomy
from headcount.stats.jackknife import jackknife_interval
from headcount.tallies.tally import Tally

__all__ = ["FOLDS", "Folds"]

#: As many groups of texts, where there are as many texts.
FOLDS = 20

#: A place is no size, and what depends on the texts alone cannot change.
_NO_DIFFERENCE = {"best_offset", "entropy_uniform"}

Array = NDArray[np.float64]
Tallies = Sequence[Tally]


@dataclass(frozen=True)
class Folds:
    """The tallies of one model, fold by fold, and how to make fresh ones."""

    anatomy: Anatomy
    fresh: Callable[[], list[Tally]]
    parts: Sequence[Tallies]

    @property
    def names(self) -> list[str]:
        """The columns that can change."""
        columns = [column.name for tally in self.fresh() for column in tally.columns]
        return [name for name in columns if name not in _NO_DIFFERENCE]

    def merged(self, parts: Sequence[Tallies] | None = None) -> list[Tally]:
        """The tallies of some folds put together, or of all; the folds stay as they are."""
        total = self.fresh()
        for part in self.parts if parts is None else parts:
            for mine, other in zip(total, part, strict=True):
                mine.merge(other)
        return total

    def values(self, tallies: Tallies, heads: Sequence[Head]) -> Array:
        """What the tallies say of some heads, `[head, column]`."""
        names = {name: place for place, name in enumerate(self.names)}
        found = np.full((len(self.anatomy.heads), len(names)), np.nan)
        for tally in tallies:
            for reading in tally.compute():
                if reading.column in names:
                    span = self.anatomy.spans[reading.site]
                    found[span, names[reading.column]] = reading.value
        row = {head: place for place, head in enumerate(self.anatomy.heads)}
        return found[[row[head] for head in heads]]

    def without_each(self, heads: Sequence[Head]) -> Iterator[Array]:
        """What is said without each fold: what comes before it with what comes after."""
        after: list[Tallies] = [self.fresh()]
        for part in reversed(self.parts[1:]):
            after.insert(0, self.merged([part, after[0]]))
        before: Tallies = self.fresh()
        for part, rest in zip(self.parts, after, strict=True):
            yield self.values(self.merged([before, rest]), heads)
            before = self.merged([before, part])

    def changes(self, other: Folds, heads: Sequence[Head]) -> pd.DataFrame:
        """For each column: the other's value less ours, its interval, and both values."""
        before, after = (one.values(one.merged(), heads) for one in (self, other))
        low, high = np.full_like(before, np.nan), np.full_like(before, np.nan)
        if len(self.parts) > 1:
            sides = zip(self.without_each(heads), other.without_each(heads), strict=True)
            left = np.stack([theirs - ours for ours, theirs in sides])
            _, low, high = jackknife_interval(after - before, left)
        columns: dict[str, Array] = {}
        for place, name in enumerate(self.names):
            told = {"": after - before, "_low": low, "_high": high}
            told |= {"_before": before, "_after": after}
            if not np.isnan(told[""][:, place]).all():
                columns |= {name + end: values[:, place] for end, values in told.items()}
        index = pd.MultiIndex.from_tuples(list(heads), names=["stack", "layer", "head"])
        return pd.DataFrame(columns, index=index)
