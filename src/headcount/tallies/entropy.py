"""How broadly a head looks: the entropy of its rows.

Clark et al., BlackBoxNLP 2019, section 3.3. Their program smooths each row with 0.0001/n
first and averages over documents; the default here does not smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.columns import Column
from headcount.tallies.tally import Reading, SumsTally, add_macro, over_rows, read_macro
from headcount.wiring.classes import of_class
from headcount.wiring.needs import Needs
from headcount.wiring.rows import uniform_entropy
from headcount.wiring.sighting import Sighting

__all__ = ["ENTROPY", "ENTROPY_FIRST", "ENTROPY_UNIFORM", "SMOOTHING", "Entropy"]

#: Clark's smoothing of a row before its logarithm.
SMOOTHING = 0.0001

ENTROPY = Column(
    "entropy",
    meaning="Mean entropy of a query's attention, averaged over sentences.",
    paper="Clark et al. 2019, section 3.3",
    unit="nats",
    range=(0, None),
    more="broader",
    group="How focused it is",
)
ENTROPY_FIRST = Column(
    "entropy_first",
    title="Entropy of the first row",
    meaning="Mean entropy of the first token's attention ([CLS] where there is one).",
    paper="Clark et al. 2019, section 3.3",
    unit="nats",
    range=(0, None),
    more="broader",
    group="How focused it is",
)
ENTROPY_UNIFORM = Column(
    "entropy_uniform",
    title="Entropy if uniform",
    meaning="The entropy that uniform attention over all visible keys would have.",
    paper="Clark et al. 2019, figure 4",
    unit="nats",
    range=(0, None),
    more="longer inputs",
    group="How focused it is",
)


@dataclass
class Entropy(SumsTally):
    """Entropy of all rows and of the first row, and what uniform attention would give."""

    convention: str = "headcount"
    columns = (ENTROPY, ENTROPY_FIRST, ENTROPY_UNIFORM)

    @property
    def needs(self) -> Needs:
        """Entropies, smoothed where the authors smooth."""
        own = self.convention == "headcount"
        return Needs(entropy=own, smoothed=None if own else SMOOTHING)

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean entropies."""
        rows, site = sighting.queries.real, sighting.site
        first = of_class(sighting.queries, "first")
        entropy = self._entropies(sighting)
        uniform = self._uniform(sighting)[:, None, :].expand(-1, site.heads, -1)
        for column, values, chosen in (
            (ENTROPY, entropy, rows),
            (ENTROPY_FIRST, entropy, first),
            (ENTROPY_UNIFORM, uniform, rows),
        ):
            add_macro(self.sums, site, column.name, over_rows(values, chosen), chosen.sum(-1))

    def compute(self) -> list[Reading]:
        """Three readings a site."""
        return [
            read_macro(self.sums, site, column.name, "there was no sentence")
            for site in self.sums
            for column in self.columns
        ]

    def _entropies(self, sighting: Sighting) -> Tensor:
        own = self.convention == "headcount"
        found = sighting.entropy if own else sighting.smoothed_entropy
        assert found is not None
        return found

    def _uniform(self, sighting: Sighting) -> Tensor:
        """ln of the visible keys; the authors' line is ln n for every row."""
        if self.convention == "headcount":
            return uniform_entropy(sighting.visible)
        keys = sighting.keys.real.sum(-1, keepdim=True)
        return uniform_entropy(keys.expand(-1, sighting.queries.real.shape[1])).to(torch.float64)
