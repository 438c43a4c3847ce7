"""How much a head looks at the first token, at separators and at punctuation.

Clark et al., BlackBoxNLP 2019, section 3.2. Their program takes two separators for granted
(it divides by 2 and by n - 2); by default the separators that are there are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.columns import Column
from headcount.models.site import Site
from headcount.tallies.tally import Reading, SumsTally, add_macro, over_rows, read_macro
from headcount.wiring.classes import of_class
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = [
    "FIRST",
    "PUNCTUATION",
    "REST_TO_SEPARATOR",
    "SEPARATOR",
    "SEPARATOR_TO_SEPARATOR",
    "Specials",
]


def _column(name: str, title: str, meaning: str) -> Column:
    return Column(
        name,
        title=title,
        meaning=meaning,
        paper="Clark et al. 2019, section 3.2",
        range=(0, 1),
        group="Where it looks",
    )


FIRST = _column(
    "first", "First token", "Mean mass on the first token ([CLS] or BOS where there is one)."
)
SEPARATOR = _column(
    "separator", "Separator", "Mean mass on separators, or on the end of the sentence."
)
SEPARATOR_TO_SEPARATOR = _column(
    "separator_to_separator", "Separator to separator", "Mean mass of a separator on separators."
)
REST_TO_SEPARATOR = _column(
    "rest_to_separator", "Rest to separator", "Mean mass on separators from all other tokens."
)
PUNCTUATION = _column("punctuation", "Punctuation", "Mean mass on punctuation tokens.")

_UNKNOWN = "nothing is known of the tokens of ready inputs"
_WHY = {
    FIRST.name: "there was no sentence",
    SEPARATOR.name: "the keys hold no separator or end of sentence",
    SEPARATOR_TO_SEPARATOR.name: "no separator asks and answers here",
    REST_TO_SEPARATOR.name: "the keys hold no separator or end of sentence",
    PUNCTUATION.name: "the keys hold no punctuation",
}


@dataclass
class Specials(SumsTally):
    """Mass on special tokens and punctuation, averaged over sentences."""

    convention: str = "headcount"
    columns = (FIRST, SEPARATOR, SEPARATOR_TO_SEPARATOR, REST_TO_SEPARATOR, PUNCTUATION)

    @property
    def needs(self) -> Needs:
        """The masses; the authors' punctuation is "." and "," alone."""
        return Needs(masses=frozenset({"first", "separator", self._marks}))

    @property
    def _marks(self) -> str:
        return "punctuation" if self.convention == "headcount" else "stops"

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean mass on each class."""
        real, masses = sighting.queries.real, sighting.masses
        separators = sighting.queries.separator & real
        rest = real & ~separators
        answered = (sighting.keys.separator & sighting.keys.real).any(-1)
        self._add(sighting, FIRST, masses["first"], real, real.sum(-1))
        self._add(sighting, PUNCTUATION, masses[self._marks], real, real.sum(-1))
        for column, rows in (
            (SEPARATOR, real),
            (SEPARATOR_TO_SEPARATOR, separators),
            (REST_TO_SEPARATOR, rest),
        ):
            cells = self._cells(column, rows, real) * answered
            self._add(sighting, column, masses["separator"], rows, cells)
        marks = (of_class(sighting.keys, self._marks) & sighting.keys.real).sum()
        known = marks.new_tensor(sighting.keys.annotated)
        self.sums.add(sighting.site, {"marks": marks, "known": known})

    def compute(self) -> list[Reading]:
        """Five readings a site."""
        return [self._read(site, column.name) for site in self.sums for column in self.columns]

    def _read(self, site: Site, name: str) -> Reading:
        why = _WHY[name] if self.sums.of(site, "known").any() else _UNKNOWN
        if name == PUNCTUATION.name and not self.sums.of(site, "marks").any():
            return Reading.missing(name, site, why)
        return read_macro(self.sums, site, name, why)

    def _cells(self, column: Column, rows: Tensor, real: Tensor) -> Tensor:
        """How many rows the mean is over: those that exist, or what the program assumes."""
        counted = rows.sum(-1)
        if self.convention == "headcount" or column is SEPARATOR:
            return counted
        if column is SEPARATOR_TO_SEPARATOR:
            return torch.where(counted > 0, 2, 0)
        return (real.sum(-1) - 2).clamp_min(0)

    def _add(
        self, sighting: Sighting, column: Column, mass: Tensor, rows: Tensor, cells: Tensor
    ) -> None:
        add_macro(self.sums, sighting.site, column.name, over_rows(mass, rows), cells)
