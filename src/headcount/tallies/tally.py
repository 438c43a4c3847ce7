"""A tally: a statistic that streams over batches, merges, and ends as columns of the table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.columns import Column
from headcount.models.site import Site
from headcount.tallies.sums import Sums
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = [
    "CONVENTIONS",
    "RatioSums",
    "Reading",
    "SumsTally",
    "Tally",
    "add_macro",
    "add_micro",
    "micro_sums",
    "over_rows",
    "read_macro",
    "read_micro",
]

CONVENTIONS = ("headcount", "paper", "code")

Array = NDArray[np.float64]


@dataclass
class Reading:
    """What a tally says of one column at one site: a value a head, its interval, or why none."""

    column: str
    site: Site
    value: Array
    low: Array
    high: Array
    note: str | None = None

    @classmethod
    def missing(cls, column: str, site: Site, why: str) -> Reading:
        """Not measured here, and the reason."""
        nothing = np.full(site.heads, np.nan)
        return cls(column, site, nothing, nothing.copy(), nothing.copy(), why)

    @classmethod
    def broken(cls, column: str, site: Site) -> Reading:
        """Measured, but not a number: the model's attention is to blame, and no reason excuses."""
        return replace(cls.missing(column, site, ""), note=None)


class Tally(Protocol):
    """The protocol: say what you need, update with sightings, merge with your kin, compute."""

    @property
    def needs(self) -> Needs:
        """What this tally asks of each map."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns it fills, described."""

    def update(self, sighting: Sighting) -> None:
        """Take in one site's sighting of one batch."""

    def merge(self, other: Self) -> None:
        """Take in a tally of the same kind from another part of the corpus."""

    def compute(self) -> list[Reading]:
        """A reading for each column and site."""

    def details(self) -> dict[str, pd.DataFrame]:
        """Tables finer than one row a head, by name; usually none."""


@dataclass
class SumsTally:
    """The shared body of tallies: sums that merge by addition, and no details."""

    sums: Sums = field(default_factory=Sums, init=False, repr=False, compare=False)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.sums.merge(other.sums)

    def details(self) -> dict[str, pd.DataFrame]:
        """Nothing finer than the columns."""
        return {}


def add_macro(sums: Sums, site: Site, name: str, total: Tensor, cells: Tensor) -> None:
    """Add one value a sentence: `total [batch, head]` over `cells [batch]`; none where no cell."""
    there = cells > 0
    value = torch.where(there[:, None], total / cells.clamp_min(1)[:, None], 0.0).double()
    count = there.sum().expand(site.heads)
    sums.add(
        site,
        {name: value.sum(0), f"{name}_squares": value.square().sum(0), f"{name}_count": count},
    )


def read_macro(sums: Sums, site: Site, name: str, why: str) -> Reading:
    """Mean over sentences with a 95% interval, or a missing reading where there was none."""
    total, squares, count = (
        sums.of(site, part).numpy() for part in (name, f"{name}_squares", f"{name}_count")
    )
    if not count.any():
        return Reading.missing(name, site, why)
    if np.isnan(total).any():
        return Reading.broken(name, site)
    return Reading(name, site, *stats.mean_interval(total, squares, count))


def add_micro(sums: Sums, site: Site, name: str, hits: Tensor, cells: Tensor) -> None:
    """Add sums for a ratio over all rows: `hits [batch, head]` among `cells [batch]`."""
    hits = hits.double()
    cells = cells.double()[:, None].expand_as(hits)
    sums.add(
        site,
        {
            f"{name}_x": hits.sum(0),
            f"{name}_n": cells.sum(0),
            f"{name}_xx": hits.square().sum(0),
            f"{name}_xn": (hits * cells).sum(0),
            f"{name}_nn": cells.square().sum(0),
            f"{name}_count": (cells > 0).sum(0),
        },
    )


class RatioSums(NamedTuple):
    """The sums over sentences that a ratio and its interval are made of, one entry a head."""

    x: Array
    n: Array
    xx: Array
    xn: Array
    nn: Array
    sentences: Array


def micro_sums(sums: Sums, site: Site, name: str) -> RatioSums:
    """The sums that `add_micro` kept."""
    parts = ("x", "n", "xx", "xn", "nn", "count")
    return RatioSums(*(sums.of(site, f"{name}_{part}").numpy() for part in parts))


def read_micro(sums: Sums, site: Site, name: str, why: str) -> Reading:
    """Ratio of sums with a 95% interval over sentences, or a missing reading."""
    kept = micro_sums(sums, site, name)
    if not kept.n.any():
        return Reading.missing(name, site, why)
    if np.isnan(kept.x).any():
        return Reading.broken(name, site)
    return Reading(name, site, *stats.ratio_interval(*kept))


def over_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Sum `[batch, head, query]` over the chosen rows `[batch, query]`, to `[batch, head]`."""
    return (values * rows[:, None, :].to(values.dtype)).sum(-1, dtype=torch.float64)
