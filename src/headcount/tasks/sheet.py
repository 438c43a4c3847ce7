"""The mark sheet: what was counted for each example, filled batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headcount.stats.results import Floats

__all__ = ["Marks", "Sheet"]


class Marks(NamedTuple):
    """What was counted in one batch, a row each, and what the model said."""

    statistics: Floats
    outputs: list[Any]


class Sheet:
    """Marks of all examples, filled batch by batch; windows of one example add up.

    >>> sheet = Sheet(2)
    >>> sheet.add([1, 1], Marks(np.array([[1.0, 2.0], [3.0, 4.0]]), []))
    >>> sheet.statistics[1], sheet.missing
    (array([4., 6.]), [0])
    """

    def __init__(self, examples: int) -> None:
        self._examples = examples
        self._statistics: Floats | None = None
        self._outputs: dict[int, Any] = {}
        self._seen: set[int] = set()

    def add(self, index: Sequence[int], marks: Marks) -> None:
        """Add a batch's marks to the examples they belong to."""
        if self._statistics is None:
            self._statistics = np.zeros((self._examples, marks.statistics.shape[1]))
        np.add.at(self._statistics, list(index), marks.statistics)
        self._outputs.update(zip(index, marks.outputs, strict=False))
        self._seen.update(index)

    @property
    def done(self) -> int:
        """How many examples have been seen."""
        return len(self._seen)

    @property
    def missing(self) -> list[int]:
        """Examples that no batch had."""
        return [number for number in range(self._examples) if number not in self._seen]

    @property
    def statistics(self) -> Floats:
        """All statistics, ``[example, column]``."""
        assert self._statistics is not None  # a task has one example or more
        return self._statistics

    @property
    def outputs(self) -> list[Any]:
        """What the model said to each example; empty where nothing was kept."""
        return [self._outputs[number] for number in sorted(self._outputs)]
