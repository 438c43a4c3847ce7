"""Source end: does a cross head rest on the end of the source sentence?

The sink of cross attention: where there is nothing to look for, the weight has to go somewhere, as
that of a decoder goes to its first token. It is the mass on the special tokens that end the source
and on the punctuation just before them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from headcount.columns import Column
from headcount.text.side import Side
from headcount.trials.question import Finding
from headcount.wiring import Needs, Sighting

__all__ = ["SOURCE_END", "Ending", "endings"]

SOURCE_END = Column(
    "source_end",
    meaning="Mean mass on the end of the source: its end token and the punctuation before it.",
    range=(0, 1),
    direction="higher",
    group="Where it looks",
)

_WHY = "only cross heads look at a source"


@dataclass
class Ending:
    """The question: how much mass lies on the end of the source?"""

    finding: Finding = field(
        default_factory=lambda: Finding(
            SOURCE_END, "uniform attention", silent={"enc": _WHY, "dec": _WHY}
        )
    )
    needs = Needs(maps=True)

    def update(self, sighting: Sighting) -> None:
        """Add each pair's mean mass over its target tokens."""
        if sighting.site.stack != "cross":
            return
        assert sighting.maps is not None
        rows, ends = sighting.queries.real, endings(sighting.keys)
        mass = (sighting.maps * ends[:, None, None]).sum(-1).double()
        hits = (mass * rows[:, None]).sum(-1)
        there = ends.sum(-1)
        chance = there / sighting.keys.real.sum(-1).double() * rows.sum(-1)
        cells = rows.sum(-1) * (there > 0)
        self.finding.marks.add(sighting.site, sighting.batch.index, hits, chance, cells)


def endings(side: Side) -> Tensor:
    """True at the special tokens that end a text and at the punctuation just before them."""
    real, text = side.real, side.real & ~side.special
    last = text & (text.long().cumsum(-1) == text.sum(-1, keepdim=True))
    behind = side.special & real & (text.long().cumsum(-1) == text.sum(-1, keepdim=True))
    return behind | (last & side.punctuation)
