"""What every head got on every example of a trial: its hits, and what chance would get.

Examples are kept apart, since the statistics draw them again: a trial has tens of them, seldom
thousands, and a head takes two numbers of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from headcount.models.site import Site
from headcount.stats.results import Floats

__all__ = ["Counted", "Marks"]


class Counted(NamedTuple):
    """The marks of one site, all ``[example, head]``: hits among cells, and chance's hits."""

    hits: Floats
    chance: Floats
    cells: Floats


class Marks:
    """Hits, chance and cells by site and example; the order of batches never shows.

    >>> import torch
    >>> site = Site("dec", 0, heads=2, kv_heads=2, head_dim=4, module="a", causal=True)
    >>> marks = Marks()
    >>> marks.add(site, [1], torch.tensor([[3.0, 0.0]]), torch.ones(1), torch.full((1,), 4))
    >>> marks.add(site, [0], torch.tensor([[1.0, 4.0]]), torch.ones(1), torch.full((1,), 4))
    >>> marks.of(site).hits.tolist()
    [[1.0, 4.0], [3.0, 0.0]]
    """

    def __init__(self) -> None:
        self._rows: dict[Site, dict[int, Floats]] = defaultdict(dict)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._rows)

    def add(
        self, site: Site, index: Sequence[int], hits: Tensor, chance: Tensor, cells: Tensor
    ) -> None:
        """Take in a batch: hits ``[batch, head]``; chance and cells so too, or ``[batch]``."""
        beside = [v.reshape(len(hits), -1).expand_as(hits) for v in (chance, cells)]
        parts = [part.detach().double().cpu().numpy() for part in (hits, *beside)]
        for row, example in enumerate(index):
            self._rows[site][example] = np.stack([part[row] for part in parts])

    def of(self, site: Site) -> Counted:
        """The site's marks in the order of the examples."""
        rows = self._rows[site]
        stacked = np.stack([rows[example] for example in sorted(rows)])
        return Counted(stacked[:, 0], stacked[:, 1], stacked[:, 2])

    @property
    def examples(self) -> list[int]:
        """The numbers of the examples seen, in order."""
        return sorted({example for rows in self._rows.values() for example in rows})
