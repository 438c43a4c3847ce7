"""The points of a curve: which heads are gone at each, in the order that a score gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from headcount.records.heads import Head

__all__ = ["Point", "along", "by_score", "shuffled"]

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class Point:
    """One set of heads that are gone."""

    order: str
    step: int
    left: int  # heads, or groups of heads
    gone: tuple[Head, ...]
    removed: tuple[Head, ...]  # those that were still there at the step before

    @property
    def name(self) -> str:
        return f"{self.order}, {self.left} left"


def by_score(units: Sequence[Unit], scores: Iterable[float]) -> list[Unit]:
    """The least important first; of equals the earlier one, as Michel et al.'s program has it.

    >>> by_score("abc", [2.0, 1.0, 1.0])
    ['b', 'c', 'a']
    """
    order = np.argsort(np.asarray(list(scores)), kind="stable")
    return [units[place] for place in order]


def shuffled(units: Sequence[Unit], seed: int) -> list[Unit]:
    """A random order."""
    order = np.random.default_rng(seed).permutation(len(units))
    return [units[place] for place in order]


def along(name: str, order: Sequence[tuple[Head, ...]], left: Sequence[int]) -> list[Point]:
    """One point for every number of units that shall be left, going down the order.

    >>> one, two = (Head("enc", 0, 0),), (Head("enc", 0, 1),)
    >>> [point.gone for point in along("gradient", [two, one], [1])]
    [(Head(stack='enc', layer=0, index=1),)]
    """
    points, before = [], set[Head]()
    for step, count in enumerate(sorted(left, reverse=True), start=1):
        gone = [head for unit in order[: len(order) - count] for head in unit]
        removed = tuple(sorted(head for head in gone if head not in before))
        points.append(Point(name, step, count, tuple(sorted(gone)), removed))
        before = set(gone)
    return points
