"""What a separator looks at itself: broadly over its text, or at itself?

Clark et al., BlackBoxNLP 2019, section 3.2, first argument: if [SEP] gathered what its segment
says, its own row would be broad; it looks at separators instead (`separator_to_separator`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headcount.columns import Column
from headcount.tallies.tally import Reading, SumsTally, add_macro, over_rows, read_macro
from headcount.wiring.needs import Needs
from headcount.wiring.rows import uniform_entropy
from headcount.wiring.sighting import Sighting

__all__ = ["ENTROPY_SEPARATOR", "SEPARATOR_BREADTH", "SeparatorRow"]

ENTROPY_SEPARATOR = Column(
    "entropy_separator",
    title="Entropy of separators",
    meaning="Mean entropy of the attention of separators.",
    paper="Clark et al. 2019, section 3.2",
    unit="nats",
    range=(0, None),
    more="broader",
    group="How broad it is",
)
SEPARATOR_BREADTH = Column(
    "separator_breadth",
    meaning="Entropy of a separator's attention as a share of what uniform attention would have.",
    paper="Clark et al. 2019, section 3.2",
    range=(0, 1),
    more="broader",
    group="How broad it is",
)

_NONE = "no separator asks here"


@dataclass
class SeparatorRow(SumsTally):
    """Entropy of the rows of separators, averaged over texts."""

    columns = (ENTROPY_SEPARATOR, SEPARATOR_BREADTH)
    needs = Needs(entropy=True)

    def update(self, sighting: Sighting) -> None:
        """Add each text's mean entropy, and its share of the largest possible."""
        assert sighting.entropy is not None
        rows = sighting.queries.separator & sighting.queries.real
        most = uniform_entropy(sighting.visible)
        rows = rows & (most > 0)  # a row that sees one token alone has no breadth
        breadth = sighting.entropy / most.clamp_min(torch.finfo(torch.float32).tiny)[:, None]
        for column, values in zip(self.columns, (sighting.entropy, breadth), strict=True):
            kept = torch.where(rows[:, None], values, 0)
            total = over_rows(kept, rows)
            add_macro(self.sums, sighting.site, column.name, total, rows.sum(-1))

    def compute(self) -> list[Reading]:
        """Two readings a site."""
        return [
            read_macro(self.sums, site, column.name, _NONE)
            for site in self.sums
            for column in self.columns
        ]
