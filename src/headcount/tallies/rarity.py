"""How often a head points to the rarest token of a sentence.

Voita et al., ACL 2019, section 5.3: among sentences whose least frequent token is not one of the
500 most frequent, the share of cases in which the largest weight is on it, and on one of the two
least frequent. The end of sentence is left out. There is no author code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.columns import Column
from headcount.models.site import Site
from headcount.tallies.frequencies import Frequencies
from headcount.tallies.rarest import Rarest, known_frequencies, rarest
from headcount.tallies.tally import (
    Reading,
    SumsTally,
    add_micro,
    micro_sums,
    over_rows,
    read_micro,
)
from headcount.text.batch import SIDES, Batch
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["RARE", "RARE_TWO", "Rarity"]

RARE = Column(
    "rare",
    title="Rarest token",
    meaning="Share of tokens whose largest weight is on the rarest token; only where that is not "
    "one of the most frequent ones.",
    paper="Voita et al. 2019, section 5.3",
    range=(0, 1),
    more="more for rare tokens",
    group="Where it points",
)
RARE_TWO = Column(
    "rare_two",
    title="Two rarest tokens",
    meaning="Share of tokens whose largest weight is on one of the two rarest tokens.",
    paper="Voita et al. 2019, section 5.3",
    range=(0, 1),
    more="more for rare tokens",
    group="Where it points",
)

#: Picks that look at no map: among all tokens in sight, and among the uncommon ones.
BLIND = ("chance", "uncommon")

_LEFT_OUT = frozenset({"separator"})


@dataclass
class Rarity(SumsTally):
    """Share of queries whose largest weight is on a rarest token, with two baselines.

    `frequencies` are one for all sides, or one a side ("source", "target"). A causal query is
    held to the tokens it can see. With `unit="sentence"` every sentence weighs the same, by the
    share of its queries. Chance is a pick among all tokens in sight; `uncommon` a pick among the
    uncommon ones: what a head would reach that only shuns frequent tokens.
    """

    frequencies: Frequencies | Mapping[str, Frequencies]
    unit: Literal["token", "sentence"] = "token"
    columns = (RARE, RARE_TWO)
    needs = Needs(tops=frozenset({_LEFT_OUT}))
    _seen: tuple[Batch | None, dict[str, tuple[Tensor, Rarest] | None]] = field(
        default=(None, {}), init=False, repr=False, compare=False
    )

    def update(self, sighting: Sighting) -> None:
        """Count the hits of the rows that are held to an uncommon token."""
        found = self._rarest(sighting)
        if found is None:
            self.sums.add(sighting.site, {"silent": torch.zeros(())})
            return
        frequency, known = found
        pointed = torch.gather(
            frequency[:, None].expand(-1, sighting.site.heads, -1), 2, sighting.tops[_LEFT_OUT][1]
        )
        asking = sighting.queries.real & ~sighting.queries.separator
        rows = asking & self._by_query(sighting, known.eligible).bool()
        for name, which in ((RARE.name, "one"), (RARE_TWO.name, "two")):
            limit = self._by_query(sighting, getattr(known, which))
            hits = over_rows((pointed <= limit[:, None]).double(), rows)
            blind = {
                part: (self._by_query(sighting, getattr(known, f"{part}_{which}")) * rows).sum(-1)
                for part in BLIND
            }
            self._add(sighting.site, name, hits, blind, rows.sum(-1).double())

    def compute(self) -> list[Reading]:
        """Two readings a site."""
        return [self._read(site, column.name) for site in self.sums for column in self.columns]

    def details(self) -> dict[str, pd.DataFrame]:
        """`rarity`: for each head and target its share, its interval, two blind picks and p."""
        frames = [
            self._frame(site, column.name)
            for site in self.sums
            for column in self.columns
            if self._known(site)
        ]
        return {"rarity": pd.concat(frames, ignore_index=True)} if frames else {}

    def _add(
        self, site: Site, name: str, hits: Tensor, blind: dict[str, Tensor], cells: Tensor
    ) -> None:
        if self.unit == "sentence":
            each = cells.clamp_min(1)
            hits, blind = hits / each[:, None], {part: x / each for part, x in blind.items()}
            cells = (cells > 0).double()
        add_micro(self.sums, site, name, hits, cells)
        for part, expected in blind.items():
            add_micro(self.sums, site, f"{name}_over_{part}", hits - expected[:, None], cells)
            self.sums.add(site, {f"{name}_{part}": expected.sum()})

    def _rarest(self, sighting: Sighting) -> tuple[Tensor, Rarest] | None:
        """What is rarest on the side of the keys; the same for all sites of a batch."""
        side = SIDES[sighting.site.stack][1]
        if self._seen[0] is not sighting.batch:
            self._seen = (sighting.batch, {})
        if side not in self._seen[1]:
            self._seen[1][side] = self._looked_up(sighting, side)
        return self._seen[1][side]

    def _looked_up(self, sighting: Sighting, side: str) -> tuple[Tensor, Rarest] | None:
        keys, known = sighting.keys, self._of_side(side)
        found = known_frequencies(keys, known) if keys.annotated and known else None
        if found is None or known is None:
            return None
        answering = (keys.real & ~keys.separator).cpu().numpy()
        frequency = torch.from_numpy(found[0]).to(keys.real.device)
        return frequency, rarest(*found, answering, known.border)

    def _of_side(self, side: str) -> Frequencies | None:
        if isinstance(self.frequencies, Frequencies):
            return self.frequencies
        return self.frequencies.get(side)

    @staticmethod
    def _by_query(sighting: Sighting, values: np.ndarray) -> Tensor:
        """One value a query, `[batch, query]`: at its own place, or after all keys."""
        found = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
        found = found.to(sighting.queries.real.device)
        return found if sighting.site.causal else found[:, -1:].expand(sighting.queries.real.shape)

    def _known(self, site: Site) -> bool:
        return bool(self.sums.has(site, "rare_n") and self.sums.of(site, "rare_n").any())

    def _read(self, site: Site, name: str) -> Reading:
        if not self._known(site):
            return Reading.missing(name, site, self._why(site))
        return read_micro(self.sums, site, name, "")

    def _why(self, site: Site) -> str:
        known = self._of_side(SIDES[site.stack][1])
        if self.sums.has(site, "rare_n") and known is not None:
            return (
                f"no sentence has a {known.by} that is not among the {known.common} most frequent "
                f"of {known.name}"
            )
        if known is not None and known.by == "word":
            return "frequencies of words need a corpus with words: a treebank, or parsed text"
        return "nothing is known of the tokens of ready inputs"

    def _frame(self, site: Site, name: str) -> pd.DataFrame:
        sums = micro_sums(self.sums, site, name)
        over = [micro_sums(self.sums, site, f"{name}_over_{part}") for part in BLIND]
        share, low, high = stats.ratio_interval(*sums, bounds=(0, 1))
        about = {"stack": site.stack, "layer": site.layer, "head": site.indices}
        figures = {"share": share, "low": low, "high": high}
        for part in BLIND:
            figures[part] = float(self.sums.of(site, f"{name}_{part}")) / np.maximum(sums.n, 1)
        figures |= {"p": stats.ratio_test(*over[0]), "p_uncommon": stats.ratio_test(*over[1])}
        return pd.DataFrame({**about, "target": name, "n": sums.n.astype(int), **figures})
