"""How much a head looks at the token itself, the one before and the one after.

Clark et al., BlackBoxNLP 2019, section 3.1 and figure 2. Their program divides all three by
the number of tokens n; by default the cells that exist are counted, n - 1 for neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.columns import Column
from headcount.models.site import Site
from headcount.tallies.tally import Reading, SumsTally, add_macro, over_rows, read_macro
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["NEXT", "PREVIOUS", "SELF", "Neighbours"]


def _column(name: str, title: str, meaning: str) -> Column:
    return Column(
        name,
        title=title,
        meaning=meaning,
        paper="Clark et al. 2019, section 3.1",
        range=(0, 1),
        group="Where it looks",
    )


SELF = _column("self", "Self", "Mean weight of a token on itself.")
PREVIOUS = _column("previous", "Previous token", "Mean weight of a token on the one before it.")
NEXT = _column("next", "Next token", "Mean weight of a token on the one after it.")

OFFSETS = {SELF.name: 0, PREVIOUS.name: -1, NEXT.name: 1}


@dataclass
class Neighbours(SumsTally):
    """Mean weight at the offsets 0, -1 and +1, averaged over sentences."""

    convention: str = "headcount"
    columns = (SELF, PREVIOUS, NEXT)
    needs = Needs(offsets=frozenset(OFFSETS.values()))

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean weight at each offset."""
        rows = sighting.queries.real
        tokens = rows.sum(-1)
        for name, offset in OFFSETS.items():
            total = over_rows(sighting.offsets[offset], rows)
            cells = tokens - abs(offset) if self.convention == "headcount" else tokens
            add_macro(self.sums, sighting.site, name, total, cells)

    def compute(self) -> list[Reading]:
        """Three readings a site; none where rows and columns are different texts."""
        return [self._read(site, name) for site in self.sums for name in OFFSETS]

    def _read(self, site: Site, name: str) -> Reading:
        if site.stack == "cross":
            return Reading.missing(name, site, "queries and keys are different texts")
        if site.causal and OFFSETS[name] > 0:
            return Reading.missing(name, site, "a causal head cannot look ahead")
        return read_macro(self.sums, site, name, "every sentence was a single token")
