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
from headcount.tallies.tally import Reading, SumsTally, over_rows
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["BEST_OFFSET", "BEST_OFFSET_SHARE", "REACH", "Offsets"]

#: Offsets this far away and further share one bin at each end; such a bin is no offset.
REACH = 512

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
        counts = _histogram(keys, rows)
        tokens = rows.sum(-1).double()
        self.sums.add(
            sighting.site,
            {
                "counts": _widened(counts.sum(0)),
                "squares": _widened(counts.square().sum(0)),
                "products": _widened((counts * tokens[:, None, None]).sum(0)),
                "tokens": tokens.sum(),
                "tokens_squared": tokens.square().sum(),
                "sentences": (tokens > 0).sum(),
                "weights": over_rows(weights, rows).sum(0),
            },
        )

    def compute(self) -> list[Reading]:
        """The most frequent offset and its share, at each site."""
        return [reading for site in self.sums for reading in self._read(site)]

    def details(self) -> dict[str, pd.DataFrame]:
        """`offsets`: the whole histogram, one row a head and offset that occurred."""
        frames = [
            _frame(site, self.sums.of(site, "counts")) for site in self.sums if self._known(site)
        ]
        return {"offsets": pd.concat(frames, ignore_index=True)} if frames else {}

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
        counts = self.sums.of(site, "counts").numpy()
        best = np.array([_most_frequent(row) for row in counts])
        heads = np.arange(site.heads)
        x, xx, xn = (
            self.sums.of(site, name).numpy()[heads, best]
            for name in ("counts", "squares", "products")
        )
        n, nn, sentences = (
            float(self.sums.of(site, name)) for name in ("tokens", "tokens_squared", "sentences")
        )
        share = stats.ratio_interval(x, n, xx, xn, nn, sentences, bounds=(0, 1))
        unknown = np.full(site.heads, np.nan)
        return [
            Reading(BEST_OFFSET.name, site, (best - REACH).astype(float), unknown, unknown.copy()),
            Reading(BEST_OFFSET_SHARE.name, site, *share),
        ]


def _histogram(keys: Tensor, rows: Tensor) -> Tensor:
    """Counts of key - query, `[batch, head, offset]`, as far as this batch reaches."""
    batch, heads, queries = keys.shape
    reach = min(REACH, queries - 1)
    offsets = keys - torch.arange(queries, device=keys.device)
    bins = offsets.clamp(-reach, reach) + reach
    counts = torch.zeros(batch, heads, 2 * reach + 1, dtype=torch.float64, device=keys.device)
    return counts.scatter_add_(2, bins, rows[:, None, :].expand_as(bins).double())


def _widened(counts: Tensor) -> Tensor:
    """A batch's histogram in the middle of one from -REACH to +REACH."""
    more = REACH - counts.shape[-1] // 2
    return torch.nn.functional.pad(counts, (more, more))


def _most_frequent(counts: np.ndarray) -> int:
    """The fullest bin of one offset; among equals the nearest, then the left one.

    >>> counts = np.zeros(2 * REACH + 1)
    >>> counts[[0, REACH - 1]] = 9, 1  # mostly far to the left, at many offsets
    >>> _most_frequent(counts) - REACH
    -1
    """
    inner = counts[1:-1]
    full = np.flatnonzero(inner == inner.max()) + 1
    return int(min(full, key=lambda place: (abs(place - REACH), place)))


def _frame(site: Site, counts: Tensor) -> pd.DataFrame:
    heads, places = counts.nonzero(as_tuple=True)
    return pd.DataFrame(
        {
            "stack": site.stack,
            "layer": site.layer,
            "head": heads.numpy(),
            "offset": places.numpy() - REACH,
            "tokens": counts[heads, places].numpy().astype(int),
        }
    )
