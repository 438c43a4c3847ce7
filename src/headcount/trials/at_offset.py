"""The question how much weight a head puts at a fixed distance, from chosen rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.text.batch import SIDES
from headcount.trials.question import Finding
from headcount.wiring import Needs, Sighting

__all__ = ["AtOffset"]

#: Offset to the rows that are asked about it.
Rows = Mapping[int, slice]


@dataclass(frozen=True)
class AtOffset:
    """Mean weight at query + offset; chance is uniform attention over what the query may see.

    `rows` says, for a side and whether it looks back only, which rows are asked about which
    offset; no rows where the question means nothing. Rows whose window ends before the offset
    do not count.
    """

    finding: Finding
    offsets: frozenset[int]
    rows: Callable[[str, bool], Rows]

    @property
    def needs(self) -> Needs:
        """The weight at the offsets."""
        return Needs(offsets=self.offsets)

    def update(self, sighting: Sighting) -> None:
        """Add each example's mean weight."""
        site = sighting.site
        asked = self.rows(SIDES[site.stack][0], site.causal)
        if not asked:
            return
        parts = [_part(sighting, offset, rows) for offset, rows in asked.items()]
        hits, chance, cells = (torch.cat(part, dim=-1).sum(-1) for part in zip(*parts, strict=True))
        if not cells.any():
            self.finding.silent[site.stack] = "the windows of some layers end before the repeat"
        self.finding.marks.add(site, sighting.batch.index, hits, chance, cells)


def _part(sighting: Sighting, offset: int, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Weight ``[batch, head, row]``, chance and whether it counts ``[batch, row]``."""
    visible = sighting.visible[:, rows]
    counts = visible >= _needed(sighting, offset)
    weight = sighting.offsets[offset][..., rows].double() * counts[:, None]
    return weight, counts / visible.clamp_min(1).double(), counts


def _needed(sighting: Sighting, offset: int) -> int:
    """How many keys a row must see for this offset to be among them, if it has a window."""
    if sighting.site.causal:
        return abs(offset) + 1
    return min(2 * abs(offset) + 1, sighting.keys.real.shape[-1])
