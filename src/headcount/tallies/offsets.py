"""Where a head points, relative to where it stands: the histogram of argmax offsets.

Voita et al., ACL 2019, section 5.1: a head is positional if its largest weight sits at one
offset for at least 90% of tokens. There is no author code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.columns import Column
from headcount.models.site import Site
from headcount.tallies.histogram import (
    REACH,
    histogram,
    most_frequent,
    possible,
    uniform,
    widened,
    within_reach,
)
from headcount.tallies.tally import RatioSums, Reading, SumsTally, over_rows
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["BEST_OFFSET", "BEST_OFFSET_SHARE", "REACH", "Offsets"]

BEST_OFFSET = Column(
    "best_offset",
    meaning="The offset at which the head's largest weight sits most often.",
    paper="Voita et al. 2019, section 5.1",
    unit="tokens",
    more="further right",
    group="Where it points",
    format="+.0f",
    diverging=True,
)
BEST_OFFSET_SHARE = Column(
    "best_offset_share",
    meaning="Share of tokens whose largest weight sits there; 0.9 makes a head positional.",
    paper="Voita et al. 2019, section 5.1",
    range=(0, 1),
    more="more positional",
    group="Where it points",
)

_LEFT_OUT = frozenset({"separator"})


@dataclass
class Offsets(SumsTally):
    """How often the largest weight sits at each offset, over all tokens but separators."""

    columns = (BEST_OFFSET, BEST_OFFSET_SHARE)
    needs = Needs(tops=frozenset({_LEFT_OUT}))

    def update(self, sighting: Sighting) -> None:
        """Count the offsets of one batch, sentence by sentence."""
        if sighting.site.stack == "cross":
            self.sums.add(sighting.site, {"tokens": torch.zeros(())})
            return
        rows = sighting.queries.real & ~sighting.queries.separator
        weights, keys = sighting.tops[_LEFT_OUT]
        counts = histogram(keys, rows)
        tokens = rows.sum(-1).double()
        answering = sighting.keys.real & ~sighting.keys.separator
        inside = within_reach(possible(sighting, rows, answering))
        blind = within_reach(uniform(sighting, rows, answering))
        self.sums.add(
            sighting.site,
            {
                "counts": widened(counts.sum(0)),
                "squares": widened(counts.square().sum(0)),
                "products": widened((counts * tokens[:, None, None]).sum(0)),
                "tokens": tokens.sum(),
                "tokens_squared": tokens.square().sum(),
                "sentences": (tokens > 0).sum(),
                "weights": over_rows(weights, rows).sum(0),
                "possible": widened(inside.sum(0)),
                "possible_squared": widened(inside.square().sum(0)),
                "possible_products": widened((counts * inside[:, None]).sum(0)),
                "uniform": widened(blind.sum(0)),
            },
        )

    def compute(self) -> list[Reading]:
        """The most frequent offset and its share, at each site."""
        return [reading for site in self.sums for reading in self._read(site)]

    def details(self) -> dict[str, pd.DataFrame]:
        """The whole histogram as `offsets`, and all that is known of the best one as `positions`.

        `positions` has two rows a head: one with the tokens at the edges, which have no token at
        that offset, in the denominator ("keep", as the paper), and one without them ("drop").
        """
        sites = [site for site in self.sums if self._known(site)]
        if not sites:
            return {}
        return {
            "offsets": pd.concat([self._histogram(site) for site in sites], ignore_index=True),
            "positions": pd.concat(
                [self._positions(site, edges) for site in sites for edges in ("keep", "drop")],
                ignore_index=True,
            ),
        }

    def _known(self, site: Site) -> bool:
        return float(self.sums.of(site, "tokens")) > 0

    def _read(self, site: Site) -> list[Reading]:
        if not self._known(site):
            why = (
                "queries and keys are different texts"
                if site.stack == "cross"
                else "no token is left once separators are dropped"
            )
            return [Reading.missing(column.name, site, why) for column in self.columns]
        if bool(self.sums.of(site, "weights").isnan().any()):
            # The largest of weights that are no numbers sits nowhere.
            return [Reading.broken(column.name, site) for column in self.columns]
        best = self._best(site)
        share = stats.ratio_interval(*self._share(site, best, "keep"), bounds=(0, 1))
        unknown = np.full(site.heads, np.nan)
        return [
            Reading(BEST_OFFSET.name, site, (best - REACH).astype(float), unknown, unknown.copy()),
            Reading(BEST_OFFSET_SHARE.name, site, *share),
        ]

    def _best(self, site: Site) -> np.ndarray:
        """The place of each head's most frequent offset in the histogram."""
        return np.array([most_frequent(row) for row in self.sums.of(site, "counts").numpy()])

    def _share(self, site: Site, best: np.ndarray, edges: str) -> RatioSums:
        """The sums of a ratio: tokens that point there among all, or among those that could."""
        heads = np.arange(site.heads)

        def at_best(name: str) -> np.ndarray:
            return self.sums.of(site, name).numpy()[heads, best]

        hits = at_best("counts"), at_best("squares")
        if edges == "keep":
            names = ("tokens", "tokens_squared", "sentences")
            n, nn, sentences = (np.full(site.heads, float(self.sums.of(site, x))) for x in names)
            return RatioSums(hits[0], n, hits[1], at_best("products"), nn, sentences)
        n, nn = (self.sums.of(site, x).numpy()[best] for x in ("possible", "possible_squared"))
        sentences = np.full(site.heads, float(self.sums.of(site, "sentences")))
        return RatioSums(hits[0], n, hits[1], at_best("possible_products"), nn, sentences)

    def _positions(self, site: Site, edges: str) -> pd.DataFrame:
        best = self._best(site)
        sums = self._share(site, best, edges)
        chance = self.sums.of(site, "uniform").numpy()[best] / np.maximum(sums.n, 1)
        share, low, high = stats.ratio_interval(*sums, bounds=(0, 1))
        return pd.DataFrame(
            {
                "stack": site.stack,
                "layer": site.layer,
                "head": site.indices,
                "offset": best - REACH,
                "edges": edges,
                "n": sums.n.astype(int),
                "share": share,
                "low": low,
                "high": high,
                "chance": chance,
                "p": stats.ratio_test(*sums, null=chance),
            }
        )

    def _histogram(self, site: Site) -> pd.DataFrame:
        return _frame(site, self.sums.of(site, "counts"))


def _frame(site: Site, counts: Tensor) -> pd.DataFrame:
    heads, places = counts.nonzero(as_tuple=True)
    return pd.DataFrame(
        {
            "stack": site.stack,
            "layer": site.layer,
            "head": np.array(site.indices)[heads.numpy()],
            "offset": places.numpy() - REACH,
            "tokens": counts[heads, places].numpy().astype(int),
        }
    )
