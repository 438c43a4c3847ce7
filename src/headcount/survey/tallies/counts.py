"""The figures of one relation and direction: accuracy, interval, baseline and p on each split.

Choosing the best of many heads and the best of many offsets, and reporting both on the sentences
they were chosen on, flatters them. Sentences are therefore split in two: offsets and heads are
chosen on `select`, and judged on `report`. The naive numbers stand beside them under `all`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headcount import stats
from headcount.records import Head

# --- Hits by sentence and relation, for every head and every fixed offset -----------------------
# Arcs of one sentence are right or wrong together, so counts are kept sentence by sentence; only
# relations that a sentence has take room (a cell), two bytes a head.

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
class BatchCells:
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


class SiteHits(NamedTuple):
    """One site's hits on one batch: ``[cell, head]`` by direction."""

    ground: BatchCells
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
    seen: Mapping[tuple[Head, ...], Sequence[SiteHits]], tried: Sequence[int]
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


def _same(one: Sequence[SiteHits], other: Sequence[SiteHits]) -> bool:
    """Whether two sites met the same batches in the same order."""
    return [id(ground) for ground, _ in one] == [id(ground) for ground, _ in other]


def _keys(
    seen: Sequence[SiteHits], number: Mapping[Unit, int]
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


# --- The figures of one relation and direction --------------------------------------------------

#: Where heads and offsets are chosen, where they are judged, and both together (naive).
SPLITS = ("select", "report", "all")

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class RelationTest:
    """How accuracies are judged.

    The null hypothesis: on `report`, the head is right no more often than the offset that was best
    on `select`, paired by sentence (exact sign flips). Holm corrects over all heads, relations and
    directions of the frame; Benjamini-Hochberg stands beside it.
    """

    #: Relations with fewer arcs are shown and not tested.
    support: int = 100
    level: float = 0.05
    #: Over sentences by resampling, in closed form, or as if arcs were independent.
    interval: Literal["bootstrap", "student", "wilson"] = "bootstrap"
    draws: int = 2000
    confidence: float = 0.95
    #: Of the split and of the draws.
    seed: int = 0
    #: Whether nsubj:pass stands alone or counts as nsubj.
    subtypes: bool = False
    #: Only these, and all of them must occur; with a subtype in the name, only that.
    relations: Sequence[str] | None = None


def in_selection(units: Sequence[Unit], seed: int = 0) -> Chosen:
    """Which sentences heads are chosen on: about half, by what they say and the seed alone.

    >>> in_selection([Unit.of(0, "Rain fell."), Unit.of(7, "Rain fell."), Unit.of(1, "It snowed.")])
    array([ True,  True, False])
    """
    return np.array([_drawn(unit.digest, seed) for unit in units], dtype=bool)


def _drawn(digest: int, seed: int) -> bool:
    return blake2b(f"{seed} {digest}".encode(), digest_size=1).digest()[0] < 128


def figures_by_split(
    counts: Counts, chosen: Chosen, tried: Sequence[int], test: RelationTest
) -> Iterator[dict[str, Any]]:
    """The figures of one relation and direction on each split."""
    place = _best_offset(counts.offsets[chosen], tried)
    naive = _best_offset(counts.offsets, tried)
    best = _accuracy(counts, chosen).argmax() if chosen.any() else -1
    enough = int(counts.arcs.sum()) >= test.support
    note = "" if enough else f"fewer than {test.support} arcs"
    for split, rows, offset in (
        ("select", chosen, place),
        ("report", ~chosen, place),
        ("all", np.ones_like(chosen), naive),
    ):
        if rows.any():
            figures = _figures(counts, rows, offset, tried, test)
            tested = split == "report" and enough
            p = _p_values(counts, rows, offset) if tested else np.nan
            selected = (np.arange(counts.hits.shape[1]) == best) & (split != "all")
            yield {"split": split, **figures, "p": p, "selected": selected, "note": note}


def _figures(
    counts: Counts,
    rows: Chosen,
    place: int | None,
    tried: Sequence[int],
    test: RelationTest,
) -> dict[str, Any]:
    arcs, hits = counts.arcs[rows], counts.hits[rows]
    low, high = _interval(arcs, hits, test)
    baseline = np.nan if place is None else counts.offsets[rows, place].sum() / arcs.sum()
    return {
        "n": int(arcs.sum()),
        "accuracy": _accuracy(counts, rows),
        "low": low,
        "high": high,
        "baseline": baseline,
        "offset": np.nan if place is None else float(tried[place]),
        "sentences": int(rows.sum()),
    }


def _accuracy(counts: Counts, rows: Chosen) -> Floats:
    return np.asarray(counts.hits[rows].sum(axis=0) / counts.arcs[rows].sum())


def _best_offset(hits: NDArray[np.int64], tried: Sequence[int]) -> int | None:
    """The place of the offset that is right most often; among equals the nearest, then the left."""
    if not len(hits):
        return None
    sums = hits.sum(axis=0)
    equal = np.flatnonzero(sums == sums.max()).tolist()
    return int(min(equal, key=lambda place: (abs(tried[place]), tried[place])))


def _interval(
    arcs: NDArray[np.int64], hits: NDArray[np.int64], test: RelationTest
) -> tuple[Floats, Floats]:
    """The ends of each head's interval; NaN where one sentence cannot tell."""
    if test.interval == "wilson":
        found = stats.wilson_interval(hits.sum(axis=0), arcs.sum(), test.confidence)
        return found.low, found.high
    if len(arcs) < 2:
        return np.full(hits.shape[1], np.nan), np.full(hits.shape[1], np.nan)
    if test.interval == "student":
        sums = ((hits**2).sum(axis=0), arcs @ hits, arcs @ arcs, len(arcs), test.confidence)
        found = stats.ratio_interval(hits.sum(axis=0), arcs.sum(), *sums, bounds=(0, 1))
    else:
        pairs = np.stack([hits, np.broadcast_to(arcs[:, None], hits.shape)], axis=-1)
        found = stats.bootstrap_interval(
            pairs, draws=test.draws, confidence=test.confidence, seed=test.seed
        )
    return found.low, found.high


def _p_values(counts: Counts, rows: Chosen, place: int | None) -> Floats | float:
    """p of each head against the offset, both asked the same arcs; NaN with one sentence."""
    if place is None or rows.sum() < 2:
        return np.nan
    differences = counts.hits[rows] - counts.offsets[rows, place, None]
    return stats.sign_flip_counts(differences, alternative="greater")
