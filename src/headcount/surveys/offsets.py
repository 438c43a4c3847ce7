"""Where a head points, relative to the query: the histogram of argmax offsets.

Voita et al., ACL 2019, section 5.1: a head is positional if its largest weight sits at one
offset for at least 90% of tokens. There is no author code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.models import Site
from headcount.records import Column
from headcount.surveys.tally import RatioSums, Reading, SumsTally, over_rows
from headcount.wiring import Needs, Sighting

# --- Histograms of offsets ----------------------------------------------------------------------

#: Offsets this far away and further share one bin at each end; such a bin is no offset.
REACH = 512


def histogram(
    keys: Tensor, rows: Tensor, places: Tensor | None = None, width: int | None = None
) -> Tensor:
    """Counts of key - query, `[batch, head, offset]`, as far as this batch reaches.

    `rows` say which queries count, or how much; `places` where they stand in a text as wide as
    `width`, if not side by side.
    """
    batch, heads, queries = keys.shape
    reach = min(REACH, (width or queries) - 1)
    own = torch.arange(queries, device=keys.device) if places is None else places[:, None]
    offsets = keys - own
    bins = offsets.clamp(-reach, reach) + reach
    counts = torch.zeros(batch, heads, 2 * reach + 1, dtype=torch.float64, device=keys.device)
    return counts.scatter_add_(2, bins, rows[:, None, :].expand_as(bins).double())


def widen_histogram(counts: Tensor) -> Tensor:
    """A batch's histogram in the middle of one from -REACH to +REACH."""
    more = REACH - counts.shape[-1] // 2
    return torch.nn.functional.pad(counts, (more, more))


def most_frequent(counts: np.ndarray) -> np.ndarray:
    """Each row's fullest bin of one offset; among equals the nearest, then the left one.

    >>> counts = np.zeros((1, 2 * REACH + 1))
    >>> counts[0, [0, REACH - 1]] = 9, 1  # mostly far to the left, at many offsets
    >>> most_frequent(counts) - REACH
    array([-1])
    """
    inner = counts[:, 1:-1]
    found = inner.argmax(-1)
    tied = found != inner.shape[-1] - 1 - inner[:, ::-1].argmax(-1)
    found[tied] = _NEAREST[inner[tied][:, _NEAREST].argmax(-1)]
    return found + 1


#: The bins of one offset, the nearest first, and of two as near the left one.
_NEAREST = np.array(sorted(range(2 * REACH - 1), key=lambda n: (abs(n + 1 - REACH), n)))


def expected_offsets(sighting: Sighting, rows: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Of each sentence's tokens, how many have a key at each offset, `[batch, offset]`, and how
    many a pick among all visible keys would put there.

    Offsets run from -(T-1) to T-1, T being the width of the batch, but no further than `REACH`.
    The first token has none to its left, the last none to its right, and nothing lies to the right
    in a causal stack.
    """
    seen = keys.sum(-1, keepdim=True)
    if sighting.site.causal:
        seen = sighting.at_places(keys.cumsum(-1))
    seen = torch.minimum(seen.expand_as(rows), sighting.visible)
    picks = torch.where(rows & (seen > 0), 1.0 / seen.clamp_min(1), 0.0).double()
    both = torch.stack([sighting.over_places(rows).double(), sighting.over_places(picks)], dim=1)
    inside, blind = _cut(sighting, pairs_at(both, keys.double())).unbind(1)
    return inside, blind


#: Numbers that are laid out at once for the products of `pairs_at`.
_LAID_OUT = 2**22


def pairs_at(rows: Tensor, keys: Tensor) -> Tensor:
    """Sum over places i of rows[i] * keys[i + offset], for every offset within reach.

    `rows` is `[batch, kind, place]`, `keys` `[batch, place]`. As a product with the keys laid out
    by offset: a Fourier transform would have to be planned anew for every shape of a batch.

    >>> ones = torch.ones(1, 1, 3, dtype=torch.float64)
    >>> pairs_at(ones, ones[0]).tolist()
    [[[1.0, 2.0, 3.0, 2.0, 1.0]]]
    """
    batch, width = keys.shape
    reach = min(REACH, width - 1)
    around = torch.nn.functional.pad(keys, (reach, reach)).unfold(1, 2 * reach + 1, 1)
    step = max(1, _LAID_OUT // (batch * (2 * reach + 1)))
    found = rows.new_zeros(*rows.shape[:2], 2 * reach + 1)
    for start in range(0, width, step):
        some = slice(start, start + step)
        found.baddbmm_(rows[:, :, some], around[:, some])
    return found


def _cut(sighting: Sighting, counts: Tensor) -> Tensor:
    """Nothing to the right in a causal stack."""
    if sighting.site.causal:
        counts[..., counts.shape[-1] // 2 + 1 :] = 0
    return counts


# --- Where a head points, relative to where it stands -------------------------------------------

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
    together = True
    needs = Needs(tops=frozenset({_LEFT_OUT}))

    def update(self, sighting: Sighting) -> None:
        """Count the offsets of one batch, sentence by sentence."""
        if sighting.site.stack == "cross":
            self.sums.add(sighting.site, {}, shared={"tokens": torch.zeros(())})
            return
        rows = sighting.queries.real & ~sighting.queries.separator
        counted = sighting.weigh(rows)
        weights, keys = sighting.tops[_LEFT_OUT]
        counts = histogram(keys, counted, sighting.places, sighting.keys.real.shape[1])
        tokens = counted.sum(-1).double()
        answering = sighting.keys.real & ~sighting.keys.separator
        inside, blind = expected_offsets(sighting, rows, answering)
        of_heads = torch.stack(
            [
                counts.sum(0),
                counts.square().sum(0),
                torch.einsum("bho,b->ho", counts, tokens),
                torch.einsum("bho,bo->ho", counts, inside),
            ]
        )
        of_all = torch.stack([inside.sum(0), inside.square().sum(0), blind.sum(0)])
        hits, squares, products, possible_products = widen_histogram(of_heads)
        possible, possible_squared, uniform = widen_histogram(of_all)
        self.sums.add(
            sighting.site,
            {
                "counts": hits,
                "squares": squares,
                "products": products,
                "weights": over_rows(weights, counted).sum(0),
                "possible_products": possible_products,
            },
            shared={
                "tokens": tokens.sum(),
                "tokens_squared": tokens.square().sum(),
                "sentences": (tokens > 0).sum(),
                "possible": possible,
                "possible_squared": possible_squared,
                "uniform": uniform,
            },
        )

    def compute(self) -> list[Reading]:
        """The most frequent offset and its share, at each site."""
        found, known = [], []
        for site in self.sums:
            if not self._known(site):
                why = (
                    "queries and keys are different texts"
                    if site.stack == "cross"
                    else "no token is left once separators are dropped"
                )
                found += [Reading.missing(column.name, site, why) for column in self.columns]
            elif bool(self.sums.of(site, "weights").isnan().any()):
                # The largest of weights that are no numbers sits nowhere.
                found += [Reading.broken(column.name, site) for column in self.columns]
            else:
                known.append(site)
        if not known:
            return found
        best = self._best(known)
        shares = stats.ratio_interval(*self._share(known, best, "keep"), bounds=(0, 1))
        ends = np.cumsum([site.heads for site in known])[:-1]
        for site, own, *share in zip(
            known, *(np.split(part, ends) for part in (best, *shares)), strict=True
        ):
            unknown = np.full(site.heads, np.nan)
            offset = (own - REACH).astype(float)
            found += [
                Reading(BEST_OFFSET.name, site, offset, unknown, unknown.copy()),
                Reading(BEST_OFFSET_SHARE.name, site, *share),
            ]
        return found

    def details(self) -> dict[str, pd.DataFrame]:
        """The whole histogram as `offsets`, and all that is known of the best one as `positions`.

        `positions` has two rows a head: one with the tokens at the edges, which have no token at
        that offset, in the denominator ("keep", as the paper), and one without them ("drop").
        """
        sites = [site for site in self.sums if self._known(site)]
        if not sites:
            return {}
        return {
            "offsets": self._histograms(sites),
            "positions": pd.concat(
                [self._positions(sites, edges) for edges in ("keep", "drop")]
            ).sort_index(kind="stable", ignore_index=True),
        }

    def _known(self, site: Site) -> bool:
        return float(self.sums.of(site, "tokens")) > 0

    def _best(self, sites: Sequence[Site]) -> np.ndarray:
        """The place of each head's most frequent offset in the histogram."""
        return most_frequent(self.sums.over(sites, "counts"))

    def _share(self, sites: Sequence[Site], best: np.ndarray, edges: str) -> RatioSums:
        """The sums of a ratio: tokens that point there among all, or among those that could."""
        heads = np.arange(len(best))
        site_of = np.repeat(np.arange(len(sites)), [site.heads for site in sites])

        def at_best(name: str) -> np.ndarray:
            return self.sums.over(sites, name)[heads, best]

        def shared(name: str) -> np.ndarray:
            return np.stack([self.sums.of(site, name).numpy() for site in sites])[site_of]

        hits, sentences = (at_best("counts"), at_best("squares")), shared("sentences")
        if edges == "keep":
            n, nn = shared("tokens"), shared("tokens_squared")
            return RatioSums(hits[0], n, hits[1], at_best("products"), nn, sentences)
        n, nn = (shared(name)[heads, best] for name in ("possible", "possible_squared"))
        return RatioSums(hits[0], n, hits[1], at_best("possible_products"), nn, sentences)

    def _histograms(self, sites: Sequence[Site]) -> pd.DataFrame:
        """Every offset of every head that any token points at."""
        counts = self.sums.over(sites, "counts")
        heads, places = counts.nonzero()
        return pd.DataFrame(
            {
                **{name: values[heads] for name, values in _named(sites).items()},
                "offset": places - REACH,
                "tokens": counts[heads, places].astype(int),
            }
        )

    def _positions(self, sites: Sequence[Site], edges: str) -> pd.DataFrame:
        """A row for each head; its index is the place of its site."""
        best = self._best(sites)
        sums = self._share(sites, best, edges)
        site_of = np.repeat(np.arange(len(sites)), [site.heads for site in sites])
        uniform = np.stack([self.sums.of(site, "uniform").numpy() for site in sites])
        chance = uniform[site_of, best] / np.maximum(sums.n, 1)
        share, low, high = stats.ratio_interval(*sums, bounds=(0, 1))
        return pd.DataFrame(
            {
                **_named(sites),
                "offset": best - REACH,
                "edges": edges,
                "n": sums.n.astype(int),
                "share": share,
                "low": low,
                "high": high,
                "chance": chance,
                "p": stats.ratio_test(*sums, null=chance),
            },
            index=site_of,
        )


def _named(sites: Sequence[Site]) -> dict[str, np.ndarray]:
    """Stack, layer and index of all heads of these sites."""
    heads = [(site.stack, site.layer, head) for site in sites for head in site.indices]
    stacks, layers, indices = zip(*heads, strict=True)
    return {
        "stack": np.array(stacks, dtype=object),
        "layer": np.array(layers),
        "head": np.array(indices),
    }
