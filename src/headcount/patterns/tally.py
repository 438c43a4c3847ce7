"""Shares of the five patterns among a head's maps, one map a text.

Kovaleva et al., EMNLP 2019, section 4.1 and figure 2. There is no author code, so the convention
`code` does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.errors import UsageError
from headcount.models.site import Site
from headcount.patterns.classify import LEAST, Judge, check_judge, numbers_of
from headcount.patterns.kinds import COLUMNS, PATTERNS
from headcount.tallies.tally import Reading, SumsTally
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["Patterns"]

_CROSS = "queries and keys are different texts"
_SMALL = f"no text has {LEAST} tokens or more"


@dataclass
class Patterns(SumsTally):
    """Tell the pattern of every map, by the bundled network or by the rule, and count.

    >>> [column.name for column in Patterns().columns][:2]
    ['pattern_vertical', 'pattern_diagonal']
    """

    by: Judge = "network"
    convention: str = "headcount"
    columns = COLUMNS

    def __post_init__(self) -> None:
        """Check who tells."""
        check_judge(self.by)
        if self.convention == "code":
            raise UsageError(
                "Patterns do not exist under the convention 'code': the authors published no "
                "program for it; use the convention headcount or paper."
            )

    @property
    def needs(self) -> Needs:
        """The maps themselves."""
        return Needs(maps=True)

    def update(self, sighting: Sighting) -> None:
        """Count the patterns of one batch."""
        assert sighting.maps is not None  # needs asks for them
        site = sighting.site
        counts = torch.zeros(len(PATTERNS) + 1, site.heads, dtype=torch.float64)
        for maps, special, segment in _texts(sighting):
            counts[-1] += 1
            counts[:-1] += self._shown(maps, special, segment).cpu()
        self.sums.add(site, {"counts": counts})

    def compute(self) -> list[Reading]:
        """The share of each pattern with Wilson's interval: one map a text, so texts are trials."""
        return [reading for site in self.sums for reading in self._of_site(site)]

    def details(self) -> dict[str, pd.DataFrame]:
        """`patterns`: a row for each head and pattern, with the number of maps."""
        rows = [row for site in self.sums for row in self._rows(site)]
        names = ["stack", "layer", "head", "pattern", "n", "share", "low", "high"]
        return {"patterns": pd.DataFrame(rows, columns=names)}

    def _shown(self, maps: Tensor, special: Tensor, segment: Tensor) -> Tensor:
        """A one for the pattern of each head, `[pattern, head]`; NaN where the map is none."""
        number = numbers_of(maps, special, segment, self.by)
        shown = torch.nn.functional.one_hot(number, len(PATTERNS)).double()
        shown[~torch.isfinite(maps).all(-1).all(-1)] = torch.nan
        return shown.T

    def _of_site(self, site: Site) -> list[Reading]:
        *hits, maps = self.sums.of(site, "counts").numpy()
        names = [column.name for column in COLUMNS]
        if not maps.any():
            why = _CROSS if site.stack == "cross" else _SMALL
            return [Reading.missing(name, site, why) for name in names]
        return [
            Reading.broken(name, site)
            if np.isnan(shown).any()
            else Reading(name, site, *stats.wilson_interval(shown, maps))
            for name, shown in zip(names, hits, strict=True)
        ]

    def _rows(self, site: Site) -> Iterator[tuple[object, ...]]:
        readings = self._of_site(site)
        maps = self.sums.of(site, "counts")[-1]
        for place, head in enumerate(site.names if maps.any() else ()):
            for pattern, one in zip(PATTERNS, readings, strict=True):
                share = one.value[place], one.low[place], one.high[place]
                yield (*head, pattern, int(maps[place]), *map(float, share))


def _texts(sighting: Sighting) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Each text's maps without padding, its specials and its segments; small ones are left out."""
    side = sighting.queries
    if sighting.site.stack == "cross" or sighting.maps is None:
        return
    for row, real in enumerate(side.real):
        places = real.nonzero().squeeze(-1)
        if len(places) >= LEAST:
            ends = side.separator[row, places].long()
            segment = ends.cumsum(0) - ends
            maps = sighting.maps[row][:, places][:, :, places]
            yield maps, side.special[row, places], segment
