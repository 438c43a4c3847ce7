"""Hits by sentence and relation, for every head and every fixed offset: what tests resample.

Arcs of one sentence are right or wrong together, so counts are kept sentence by sentence; only
relations that a sentence has take room (a cell), two bytes a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headcount.heads import Head

__all__ = ["ALL", "Ground", "RelationCounts", "Seen", "Unit", "counts_of", "universal"]

#: The name under which every word counts, whatever its relation.
ALL = "all"

Small = NDArray[np.int16]


class Unit(NamedTuple):
    """A sentence: its number in the corpus, and what it says in short.

    Both, so that shards that count from 0 each keep their sentences apart.
    """

    number: int
    digest: int

    @classmethod
    def of(cls, number: int, text: str) -> Unit:
        """The unit of a text.

        >>> Unit.of(3, "Rain fell.").number
        3
        """
        return cls(number, int.from_bytes(blake2b(text.encode(), digest_size=7).digest()))


@dataclass(frozen=True)
class Ground:
    """The cells of one batch, and what every head is measured against there.

    Arrays have one row a cell; counts are by direction.
    """

    units: tuple[Unit, ...]
    #: Which of the units a cell belongs to.
    unit: Small
    labels: tuple[str, ...]
    arcs: Mapping[str, Small]
    #: Hits of each fixed offset, ``[cell, offset]``.
    offsets: Mapping[str, Small]


class Seen(NamedTuple):
    """One site's hits on one batch: ``[cell, head]`` by direction."""

    ground: Ground
    hits: Mapping[str, Small]


class Counts(NamedTuple):
    """One relation and direction, one row a sentence that has it."""

    unit: NDArray[np.int64]
    #: Number of arcs, ``[sentence]``.
    arcs: NDArray[np.int64]
    #: ``[sentence, head]``.
    hits: NDArray[np.int64]
    #: ``[sentence, offset]``.
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class RelationCounts:
    """The counts of one stack over the whole corpus, cells in the order of their sentences."""

    heads: tuple[Head, ...]
    #: The offsets that were tried.
    tried: tuple[int, ...]
    units: tuple[Unit, ...]
    unit: NDArray[np.int64]
    labels: NDArray[np.str_]
    arcs: Mapping[str, Small]
    hits: Mapping[str, Small]
    offsets: Mapping[str, Small]

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that were counted."""
        return tuple(self.arcs)

    def relations(self, subtypes: bool = False) -> list[str]:
        """The relations that occur, the most frequent first, as a whole or without subtypes."""
        names = self.labels if subtypes else self._universal
        names, where = np.unique(names, return_inverse=True)
        most = max(self.arcs.values(), key=lambda arcs: int(arcs.sum()))
        sums = np.bincount(where, weights=most, minlength=len(names))
        return [str(name) for name in names[np.argsort(-sums, kind="stable")]]

    def of(self, relation: str, direction: str, subtypes: bool = False) -> Counts:
        """The counts of a relation by sentence; `all` is every word."""
        if relation == ALL:
            cells = np.arange(len(self.unit))
        else:
            names = self.labels if subtypes or ":" in relation else self._universal
            cells = np.flatnonzero(names == relation)
        unit, starts = np.unique(self.unit[cells], return_index=True)
        parts = (self.arcs[direction], self.hits[direction], self.offsets[direction])
        sums = [_summed(part[cells], starts) for part in parts]
        asked = sums[0] > 0
        return Counts(unit[asked], *(part[asked] for part in sums))

    @cached_property
    def _universal(self) -> NDArray[np.str_]:
        return np.array([universal(str(label)) for label in self.labels], dtype=np.str_)


def universal(label: str) -> str:
    """A relation without its subtype.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return label.partition(":")[0]


def counts_of(
    seen: Mapping[tuple[Head, ...], Sequence[Seen]], tried: Sequence[int]
) -> RelationCounts:
    """Put a stack's batches together: what each of its sites (its heads) saw."""
    first = next(iter(seen.values()))
    units = sorted({unit for ground, _ in first for unit in ground.units})
    number = {unit: place for place, unit in enumerate(units)}
    unit, labels, order = _keys(first, number)
    directions = tuple(first[0].hits)
    orders = [order if _same(first, site) else _keys(site, number)[2] for site in seen.values()]
    hits = {
        d: np.concatenate(
            [
                _joined(h[d] for _, h in site)[o]
                for site, o in zip(seen.values(), orders, strict=True)
            ],
            axis=1,
        )
        for d in directions
    }
    return RelationCounts(
        heads=tuple(head for heads in seen for head in heads),
        tried=tuple(tried),
        units=tuple(units),
        unit=unit[order],
        labels=labels[order],
        arcs={d: _joined(ground.arcs[d] for ground, _ in first)[order] for d in directions},
        hits=hits,
        offsets={d: _joined(ground.offsets[d] for ground, _ in first)[order] for d in directions},
    )


def _same(one: Sequence[Seen], other: Sequence[Seen]) -> bool:
    """Whether two sites met the same batches in the same order."""
    return [id(ground) for ground, _ in one] == [id(ground) for ground, _ in other]


def _keys(
    seen: Sequence[Seen], number: Mapping[Unit, int]
) -> tuple[NDArray[np.int64], NDArray[np.str_], NDArray[np.intp]]:
    """Each cell's sentence and relation, and the order that sorts by them."""
    unit = np.concatenate(
        [
            np.array([number[u] for u in ground.units], dtype=np.int64)[ground.unit]
            for ground, _ in seen
        ]
    )
    labels = np.concatenate([np.array(ground.labels, dtype=np.str_) for ground, _ in seen])
    return unit, labels, np.lexsort((labels, unit))


def _joined(parts: Iterable[Small]) -> Small:
    return np.concatenate(list(parts))


def _summed(cells: Small, starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """Cells of one sentence added up."""
    if not len(starts):
        return np.zeros((0, *cells.shape[1:]), dtype=np.int64)
    return np.add.reduceat(cells, starts, axis=0, dtype=np.int64)
