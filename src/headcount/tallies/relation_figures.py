"""The figures of one relation and direction: accuracy, interval, baseline and p on each split.

Choosing the best of many heads and the best of many offsets, and reporting both on the sentences
they were chosen on, flatters them. Sentences are therefore split in two: offsets and heads are
chosen on `select`, and judged on `report`. The naive numbers stand beside them under `all`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headcount import stats
from headcount.tallies.relation_counts import Counts, Unit

__all__ = ["SPLITS", "RelationTest", "figures_by_split", "in_selection"]

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
