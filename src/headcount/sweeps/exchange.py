"""Who lends to whom: every example gets another one as its donor, whatever the batches are."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from headcount.errors import UsageError
from headcount.sweeps.rows import picked, rows_an_example
from headcount.text.batch import Batch

__all__ = ["Exchange", "ring"]


class Exchange:
    """A seeded ring of examples, each lending to the next; windows of long texts go in turn."""

    def __init__(self, batches: Sequence[Batch], seed: int) -> None:
        self._batches = batches
        #: Where each example lies: its batch and its place there, once for every window.
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, batch in enumerate(batches):
            for place, example in enumerate(batch.index):
                self._places[example].append((number, place))
        for places in self._places.values():
            places.sort(key=self._window)
        self._donor = ring(sorted(self._places), seed)

    def lent(self, number: int) -> list[tuple[Batch, list[int]]]:
        """The donors of a batch as batches, and for each of their rows the row it is for."""
        chosen: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for place, example in enumerate(self._batches[number].index):
            window = self._places[example].index((number, place))
            places = self._places[self._donor[example]]
            lender, at = places[window % len(places)]
            chosen[lender].append((at, place))
        return [self._batch(lender, pairs) for lender, pairs in chosen.items()]

    def _batch(self, lender: int, pairs: list[tuple[int, int]]) -> tuple[Batch, list[int]]:
        batch = self._batches[lender]
        each = rows_an_example(batch)
        rows = [place * each + part for _, place in pairs for part in range(each)]
        return picked(batch, [at for at, _ in pairs]), rows

    def _window(self, where: tuple[int, int]) -> int:
        batch, place = self._batches[where[0]], where[1]
        windows = batch.window[:: rows_an_example(batch)]
        return windows[place] if windows else 0


def ring(examples: Sequence[int], seed: int) -> dict[int, int]:
    """Each example's donor: the next in a random circle, so never the example itself.

    >>> ring([0, 1, 2], seed=0)
    {1: 2, 2: 0, 0: 1}
    """
    if len(examples) < 2:
        raise UsageError(
            "Resampling takes what a head gives on another example, and there is only one; give "
            "two examples or more, or use the mode zero or mean."
        )
    circle = random.Random(seed).sample(list(examples), len(examples))
    return dict(zip(circle, [*circle[1:], circle[0]], strict=True))
