"""How unlike two heads are: the Jensen-Shannon divergence between their rows, for all pairs.

Clark et al., BlackBoxNLP 2019, section 6: each row is smoothed with 0.001/n, divergences are summed
over all rows of all texts. Heads are compared within a stack, where they ask and answer on the
same tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.errors import check_convention
from headcount.models import Site, Subject
from headcount.records import Column, Head, HeadTable, Run
from headcount.surveys import Reading, TallyPlan
from headcount.text import Batch
from headcount.wiring import Needs, Sighting, tiles_of

# --- Features of attention weights between which Jensen-Shannon divergence is a plain -----------
# The divergence of two distributions is a sum over keys of js(x, y), and js is the square of a
# Euclidean distance (Fuglede and Topsoe 2004). Its features are waves in the logarithm (Vedaldi and
# Zisserman 2012): js(x, y) = 1/2 * integral of sech(pi w) / (1 + 4 w^2) * |sqrt(x) e^(i w ln x) -
# sqrt(y) e^(i w ln y)|^2 over w. So all pairs of heads need one matrix product of features instead
# of a logarithm for each pair and key.

#: Up to so many tokens a text is short.
_SHORT = 512
#: Frequencies and weights that replace the integral: of all sums of so many waves, close to the one
#: whose largest relative error is least for weights up to a factor of e^13.15 apart, which is what
#: smoothing leaves of short texts. It is 1e-4. Four waves are 32 bytes of features, which NumPy
#: looks up fastest.
_WAVES = (
    (0.18483055, 0.56607835),
    (0.59231611, 0.11178176),
    (1.07997502, 0.01294048),
    (1.76948435, 0.00107311),
)
#: The same for longer texts, whose weights may be a factor of e^20 apart: 6e-5.
_MORE_WAVES = (
    (0.14372687, 0.48717982),
    (0.45070139, 0.16561515),
    (0.80717551, 0.03414694),
    (1.25266410, 0.00556003),
    (1.93782760, 0.00054581),
)

#: The table has a row for each leading bits of a float: its exponent and so many of the mantissa.
_MANTISSA = 13
_SHIFT = 23 - _MANTISSA
#: Weights from 2^-36 to 2 have rows; what is smaller takes the first.
_FIRST, _LAST = (127 - 36) << _MANTISSA, 128 << _MANTISSA


def js_features(weights: Tensor, keys: int) -> Tensor:
    """Features `[..., feature]` of float32 weights in [0, 2), on texts of so many tokens.

    >>> one, other = (js_features(torch.tensor(p), 2) for p in ([0.9, 0.1], [0.2, 0.8]))
    >>> round(float((one - other).square().sum() / 2), 4)  # 0.5 KL(p|m) + 0.5 KL(q|m)
    0.2754
    """
    places, known = (weights.contiguous().view(torch.int32) >> _SHIFT) - _FIRST, keys <= _SHORT
    if weights.device.type == "cpu":  # where NumPy looks up in half the time
        return torch.from_numpy(np.take(table(known), places.numpy(), axis=0, mode="clip"))
    return _table_on(weights.device, known)[places.clamp_min(0)]


@lru_cache(maxsize=2)
def table(short: bool) -> NDArray[np.float32]:
    """Features `[leading bits, feature]` of the middle of all floats that begin with the same bits.

    A cosine and a sine a wave. A weight is off by 6e-5 of itself at most, up as often as down.
    """
    waves, shares = np.array(_WAVES if short else _MORE_WAVES).T
    rows = np.arange(_FIRST, _LAST, dtype=np.int32)
    weights = ((rows << _SHIFT) + (1 << (_SHIFT - 1))).view(np.float32).astype(np.float64)
    turns, sizes = np.log(weights)[:, None] * waves, np.sqrt(weights[:, None] * shares)
    features = np.concatenate([sizes * np.cos(turns), sizes * np.sin(turns)], axis=1)
    return features.astype(np.float32)


@lru_cache(maxsize=8)
def _table_on(device: torch.device, short: bool) -> Tensor:
    return torch.from_numpy(table(short)).to(device)


# --- How unlike two heads are -------------------------------------------------------------------

#: Clark's smoothing of a row: 0.999 a + 0.001/n.
SMOOTHING = 0.001

#: Weights above 1 are none of a distribution, but for what rounding adds.
_MOST = 1.01

#: Weights of all heads that are turned to features at a time.
_AT_A_TIME, _AT_A_TIME_ON_DEVICE = 2**17, 2**25


@dataclass(frozen=True)
class StackPairs:
    """Divergences between the heads of a stack, summed over rows, in nats."""

    heads: tuple[Head, ...]
    js_sum: NDArray[np.float64]
    #: Rows that were compared.
    rows: int


@dataclass
class Divergence:
    """Sums for all pairs of heads of each stack; one batch's maps are held at a time.

    By features, whose error is at most 1e-4 of each divergence; under the conventions `paper` and
    `code` by the definition in float64, which takes many times longer.
    """

    convention: str = "headcount"
    columns: tuple[Column, ...] = ()
    needs = Needs(tiles=True)
    _grams: dict[tuple[Site, ...], Tensor] = field(default_factory=dict, init=False, repr=False)
    _rows: dict[tuple[Site, ...], int] = field(default_factory=dict, init=False, repr=False)
    _held: dict[str, list[Sighting]] = field(default_factory=dict, init=False, repr=False)
    _batch: Batch | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a convention that is none."""
        check_convention(self.convention)

    def update(self, sighting: Sighting) -> None:
        """Keep the map until the batch's other layers are there."""
        if sighting.batch is not self._batch:
            self._settle()
            self._batch = sighting.batch
        self._held.setdefault(sighting.site.stack, []).append(sighting)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self._settle()
        other._settle()
        for sites, gram in other._grams.items():
            self._add(sites, gram, other._rows[sites])

    def compute(self) -> list[Reading]:
        """No column: a distance belongs to two heads."""
        return []

    def details(self) -> dict[str, pd.DataFrame]:
        """Nothing: see `pairs`."""
        return {}

    def pairs(self) -> dict[str, StackPairs]:
        """Divergences by stack, summed over rows and texts."""
        self._settle()
        return {
            sites[0].stack: StackPairs(
                tuple(head for site in sites for head in site.names),
                _distances(gram),
                self._rows[sites],
            )
            for sites, gram in self._grams.items()
        }

    def keep(self, run: Run, subject: Subject, table: HeadTable) -> None:
        """Write the families of heads as the run's pairs.npz."""
        from headcount.rooms.families.grouping import families_of_tally

        about = table.provenance
        families = families_of_tally(subject, self, seed=about["seed"] or 0, about=about)
        run.write_arrays("pairs", families.arrays())
        settings = {"convention": about["convention"], **about["settings"]}
        run.stage("families").finish(settings, about)

    def _settle(self) -> None:
        """Compare the heads of the batch that is held, and let its maps go."""
        for seen in self._held.values():
            seen = sorted(seen, key=lambda one: (one.site.layer, one.site.call))
            rows = int(seen[0].queries.real.sum())
            work = gram if self.convention == "headcount" else minus_divergence
            self._add(tuple(one.site for one in seen), _over_texts(seen, work), rows)
        self._held, self._batch = {}, None

    def _add(self, sites: tuple[Site, ...], gram: Tensor, rows: int) -> None:
        before = self._grams.get(sites)
        self._grams[sites] = gram if before is None else before + gram
        self._rows[sites] = self._rows.get(sites, 0) + rows


def _over_texts(seen: list[Sighting], work: Callable[[Tensor], Tensor]) -> Tensor:
    """The sum over the texts of a batch of something between all pairs of heads.

    Divergences add up over rows, so that long texts are compared a tile of rows at a time.
    """
    heads = sum(one.site.heads for one in seen)
    total = torch.zeros(heads, heads, dtype=torch.float64)
    for own in tiles_of(seen):
        rows = [one.rows_at(own.to(one.device)) for one in seen]
        for place in range(len(seen[0].batch)):
            total += work(
                torch.cat([_cropped(*pair, own, place) for pair in zip(seen, rows, strict=True)])
            )
    return total


def _cropped(sighting: Sighting, rows: Tensor, own: Tensor, place: int) -> Tensor:
    """Rows of one text's map without padding, `[head, query, key]`; all layers in one place."""
    queries, keys = sighting.queries.real[place][own], sighting.keys.real[place]
    maps = rows[place]
    if not (queries.all() and keys.all()):
        maps = maps[:, queries][:, :, keys]
    return maps.float() if maps.device.type in ("cpu", "cuda") else maps.float().cpu()


def gram(maps: Tensor) -> Tensor:
    """Products `[head, head]` of the features of one text's maps `[head, query, key]`.

    Half of two heads' own products less their common one is their divergence, summed over rows.
    """
    low, high = (float(end) for end in maps.aminmax()) if maps.numel() else (0.0, 0.0)
    if not (low >= 0 and high <= _MOST):  # NaN too: neither has a row in the table of features
        return torch.full((len(maps), len(maps)), torch.nan, dtype=torch.float64)
    total = torch.zeros(len(maps), len(maps), dtype=torch.float64, device=maps.device)
    keys, on_cpu = maps.shape[-1], maps.device.type == "cpu"
    at_once = _AT_A_TIME if on_cpu else _AT_A_TIME_ON_DEVICE
    for part in maps.flatten(1).split(max(64, at_once // max(len(maps), 1)), dim=1):
        features = js_features(_smoothed(part, keys), keys).view(len(maps), -1)
        # Of a matrix and itself turned NumPy computes one half.
        product: Any = features.numpy() @ features.numpy().T if on_cpu else features @ features.T
        total += torch.as_tensor(product)
    return total.cpu()


def minus_divergence(maps: Tensor) -> Tensor:
    """Less the divergences `[head, head]` of one text's maps, by the definition and in float64.

    0.5 KL(p|m) + 0.5 KL(q|m) is the entropy of the mean less the mean of the entropies.
    """
    maps = _smoothed(maps.double(), maps.shape[-1]).flatten(1)
    own = (maps * maps.log()).sum(1)
    total = torch.zeros(len(maps), len(maps), dtype=torch.float64, device=maps.device)
    for place, one in enumerate(maps):
        mixed = (one + maps[place:]) / 2
        total[place, place:] = (mixed * mixed.log()).sum(1)
    total = total + total.triu(1).T
    return (total - (own[:, None] + own[None, :]) / 2).cpu()


def _smoothed(maps: Tensor, keys: int) -> Tensor:
    return (1 - SMOOTHING) * maps + SMOOTHING / max(keys, 1)


def _distances(products: Tensor) -> NDArray[np.float64]:
    own = products.diagonal()
    apart = (own[:, None] + own[None, :]) / 2 - products
    apart = ((apart + apart.T) / 2).clamp_min(0).fill_diagonal_(0)
    return apart.numpy()


#: It among the tallies of the registry, by its name alone.
PLAN = TallyPlan(
    lambda subject, corpus, options: None, named=lambda convention, way: Divergence(convention)
)
