"""How sure a head is: the mean of its largest weight.

Voita et al., ACL 2019, section 4: mean over all query tokens of max_j a(i, j), with the end of
sentence left out. There is no author code, so the convention `code` does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.columns import Column
from headcount.tallies.tally import Reading, SumsTally, add_micro, over_rows, read_micro
from headcount.wiring.classes import of_class
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["CONFIDENCE", "Confidence"]

CONFIDENCE = Column(
    "confidence",
    meaning="Mean of the largest weight of each query; separators and ends of sentence left out.",
    paper="Voita et al. 2019, section 4",
    range=(0, 1),
    direction="higher",
    more="surer",
    group="How focused it is",
)


@dataclass
class Confidence(SumsTally):
    """Mean largest weight over tokens.

    `drop` names the classes left out as key and as query; `renormalize` divides each weight
    by what the row keeps after that.
    """

    drop: frozenset[str] = frozenset({"separator"})
    renormalize: bool = False
    columns = (CONFIDENCE,)

    @property
    def needs(self) -> Needs:
        """The largest weight of each row."""
        masses = self.drop if self.renormalize else frozenset()
        return Needs(tops=frozenset({self.drop}), masses=masses)

    def update(self, sighting: Sighting) -> None:
        """Add up the largest weights of the rows that count."""
        rows = sighting.queries.real
        for name in self.drop:
            rows = rows & ~of_class(sighting.queries, name)
        weight = self._kept(sighting, sighting.tops[self.drop][0])
        add_micro(self.sums, sighting.site, "confidence", over_rows(weight, rows), rows.sum(-1))

    def compute(self) -> list[Reading]:
        """One reading a site."""
        return [
            read_micro(
                self.sums, site, "confidence", "no token is left once separators are dropped"
            )
            for site in self.sums
        ]

    def _kept(self, sighting: Sighting, weight: Tensor) -> Tensor:
        if not self.renormalize:
            return weight
        dropped = torch.stack([sighting.masses[name] for name in sorted(self.drop)]).sum(0)
        return weight / (1 - dropped).clamp_min(1e-9)
