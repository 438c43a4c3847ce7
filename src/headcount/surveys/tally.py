"""A tally: a statistic that streams over batches, merges, and ends as columns of the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypedDict, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.models import Anatomy, Site, members_of
from headcount.records import Column, HeadTable
from headcount.wiring import Needs, Sighting

Array = NDArray[np.float64]

# --- Named sums, kept for every site in float64 -------------------------------------------------


class Sums:
    """Sums by site and name; adding is all that happens to them, so they always merge.

    Values have the heads first. Several sites may be added to at once (`SiteGroup`), their heads
    side by side; asked for, each site has its own. What all heads share is added as `shared`.

    >>> from headcount.models.site import Site
    >>> site = Site("enc", 0, heads=2, kv_heads=2, head_dim=4, module="a")
    >>> sums = Sums()
    >>> sums.add(site, {"hits": torch.tensor([1.0, 2.0])})
    >>> sums.add(site, {"hits": torch.tensor([3.0, 4.0])}, shared={"tokens": torch.tensor(7)})
    >>> sums.of(site, "hits"), sums.of(site, "tokens").item()
    (tensor([4., 6.], dtype=torch.float64), 7.0)
    """

    def __init__(self) -> None:
        #: By site or group; a name tells whether its values are shared by all heads.
        self._sums: dict[Site, dict[tuple[str, bool], Tensor]] = {}
        #: The same on the CPU, made when asked for: all that holds heads of a site, and where.
        self._read: dict[Site, list[tuple[dict[tuple[str, bool], Tensor], slice | None]]] = {}

    def __iter__(self) -> Iterator[Site]:
        return iter(dict.fromkeys(site for whole in self._sums for site in members_of(whole)))

    def add(
        self, site: Site, values: Mapping[str, Tensor], shared: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add a tensor to each named sum of a site."""
        named = {(name, False): value for name, value in values.items()}
        self._add(site, named | {(name, True): value for name, value in (shared or {}).items()})

    def _add(self, site: Site, values: Mapping[tuple[str, bool], Tensor]) -> None:
        sums = self._sums.setdefault(site, {})
        self._read = {}
        exact = {name: value.detach().to(torch.float64) for name, value in values.items()}
        old = [name for name in exact if name in sums]
        if old:  # all at once: on a GPU each addition of its own would cost a launch
            added = torch._foreach_add([sums[name] for name in old], [exact[name] for name in old])
            sums.update(zip(old, added, strict=True))
        sums.update({name: value for name, value in exact.items() if name not in sums})

    def of(self, site: Site, name: str) -> Tensor:
        """One sum, on the CPU."""
        found = self._parts(site, name)
        if not found:
            raise KeyError(name)
        return found[0] if len(found) == 1 else torch.stack(found).sum(0)

    def over(self, sites: Sequence[Site], name: str) -> Array:
        """One sum of the heads of several sites, one after another."""
        return np.concatenate([self.of(site, name).numpy() for site in sites])

    @property
    def broken(self) -> bool:
        """Whether any sum is not a number."""
        values = [value for sums in self._sums.values() for value in sums.values()]
        if not values:
            return False
        # The sum of all is one number to wait for, and not a number where any of them is not.
        totals = torch.stack([value.sum().to(values[0].device) for value in values])
        return bool(totals.isnan().any())

    def has(self, site: Site, name: str) -> bool:
        """Whether anything was added under a name."""
        return bool(self._parts(site, name))

    def _parts(self, site: Site, name: str) -> list[Tensor]:
        """What was added for a site, alone and with others."""
        if not self._read:
            for whole, sums in self._sums.items():
                here, start = _on_cpu(sums), 0
                for member in members_of(whole):
                    heads = None if member is whole else slice(start, start + member.heads)
                    self._read.setdefault(member, []).append((here, heads))
                    start += member.heads
        found = []
        for here, heads in self._read.get(site, ()):
            own, shared = here.get((name, False)), here.get((name, True))
            found += [] if own is None else [own if heads is None else own[heads]]
            found += [] if shared is None else [shared]
        return found

    def merge(self, other: Sums) -> None:
        """Add all sums of another part of the corpus."""
        for whole, sums in other._sums.items():
            device = next((v.device for v in self._sums.get(whole, {}).values()), None)
            self._add(whole, {n: v if device is None else v.to(device) for n, v in sums.items()})


def _on_cpu(sums: dict[tuple[str, bool], Tensor]) -> dict[tuple[str, bool], Tensor]:
    """Sums of one device on the CPU; they travel together, since each transfer waits."""
    values = list(sums.values())
    if not values or values[0].device.type == "cpu":
        return sums
    parts = (
        torch.cat([value.flatten() for value in values])
        .cpu()
        .split([value.numel() for value in values])
    )
    return {
        name: part.view(value.shape)
        for (name, value), part in zip(sums.items(), parts, strict=True)
    }


# --- A tally ------------------------------------------------------------------------------------

Made = TypeVar("Made")


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
    """The protocol: say what you need, update with sightings, merge with tallies alike, compute.

    A tally whose `together` is true takes the sites of a stack at once (see `Sighting`).
    """

    @property
    def needs(self) -> Needs:
        """What this tally needs of each map."""

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


@dataclass(frozen=True)
class TallyPlan:
    """How a survey comes by a tally of the registry; a class alone is made without arguments."""

    #: Given the model, the corpus and the `SurveyOptions`; None where it has nothing to say.
    make: Callable[[Any, Any, Any], Tally | None]
    #: What it looks at: "text", "treebank", "coref" or "arguments".
    corpus: str = "text"
    #: Of text: a survey has it where one of these columns is asked for, or read by a role.
    columns: tuple[Column, ...] = ()
    #: Of text: a survey has it also where a role reads this.
    read_by: str = ""
    #: By its name in `tallies`, given the convention and what stands after a colon.
    named: Callable[[str, str], Tally] | None = None


@dataclass
class SumsTally:
    """The shared body of tallies: sums that merge by addition, and no details."""

    #: Whether `update` takes the sites of a stack at once.
    together: ClassVar[bool] = False
    sums: Sums = field(default_factory=Sums, init=False, repr=False, compare=False)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.sums.merge(other.sums)

    def details(self) -> dict[str, pd.DataFrame]:
        """Nothing finer than the columns."""
        return {}


class Receivers(TypedDict):
    """Who is shown what a tap sees: site by site, and the sites of a stack at once."""

    receive: Callable[[Sighting], None] | None
    together: Callable[[Sighting], None] | None


def readings_of(tallies: Sequence[Tally]) -> list[Reading]:
    """What all tallies say."""
    return [reading for tally in tallies for reading in tally.compute()]


def receivers(tallies: Sequence[Tally]) -> Receivers:
    """Hand sightings to every tally, in the way that each takes them."""

    def hand_to(chosen: list[Tally]) -> Callable[[Sighting], None] | None:
        def receive(sighting: Sighting) -> None:
            for tally in chosen:
                tally.update(sighting)

        return receive if chosen else None

    together = [tally for tally in tallies if getattr(tally, "together", False)]
    apart = [tally for tally in tallies if not getattr(tally, "together", False)]
    return {"receive": hand_to(apart), "together": hand_to(together)}


def add_macro(
    sums: Sums, site: Site, totals: Mapping[str, Tensor], cells: Mapping[str, Tensor]
) -> None:
    """Add one value a sentence under each name: `total [batch, head]` over `cells [batch]`.

    A sentence without cells has none. All names at once: on a GPU every step costs a launch.
    """
    names = list(totals)
    total = torch.stack([totals[name] for name in names]).double()
    count = torch.stack([cells[name].to(total.device) for name in names])
    there = count > 0
    value = torch.where(there[..., None], total / count.clamp_min(1)[..., None], 0.0)
    parts = value.sum(1), value.square().sum(1), there.sum(1)[:, None].expand(-1, site.heads)
    ends = ("", "_squares", "_count")
    sums.add(
        site,
        {
            name + end: part[place]
            for end, part in zip(ends, parts, strict=True)
            for place, name in enumerate(names)
        },
    )


def read_macro(
    sums: Sums, name: str, why: str | Callable[[Site], str], sites: Sequence[Site] | None = None
) -> list[Reading]:
    """Mean over sentences with a 95% interval at every site, or why there is none."""
    chosen = list(sums) if sites is None else sites
    kept = [f"{name}{end}" for end in ("", "_squares", "_count")]
    return _readings(sums, name, why, chosen, kept, 2, stats.mean_interval)


def read_columns(sums: Sums, columns: Sequence[Column], why: str) -> list[Reading]:
    """The same for several columns."""
    return [reading for column in columns for reading in read_macro(sums, column.name, why)]


def _readings(
    sums: Sums,
    name: str,
    why: str | Callable[[Site], str],
    sites: Sequence[Site],
    kept: Sequence[str],
    count: int,
    interval: Callable[..., tuple[Array, ...]],
) -> list[Reading]:
    """The interval of some sums, all sites at once; `count` is the place of their denominator."""
    if not sites:
        return []
    values = [sums.over(sites, part) for part in kept]
    ends = np.cumsum([site.heads for site in sites])
    starts = ends - [site.heads for site in sites]
    counted = np.logical_or.reduceat(values[count] != 0, starts)
    broken = np.logical_or.reduceat(np.isnan(values[0]), starts)
    told = np.repeat(counted & ~broken, ends - starts)
    shown = [np.full(len(told), np.nan) for _ in range(3)]
    for whole, part in zip(shown, interval(*(one[told] for one in values)), strict=True):
        whole[told] = part

    def reading(place: int, site: Site) -> Reading:
        if not counted[place]:
            return Reading.missing(name, site, why if isinstance(why, str) else why(site))
        if broken[place]:
            return Reading.broken(name, site)
        value, low, high = (part[starts[place] : ends[place]] for part in shown)
        return Reading(name, site, value, low, high)

    return [reading(place, site) for place, site in enumerate(sites)]


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


#: What `add_micro` keeps, in the order that `stats.ratio_interval` takes it.
_MICRO = ("x", "n", "xx", "xn", "nn", "count")


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
    return RatioSums(*(sums.of(site, f"{name}_{part}").numpy() for part in _MICRO))


def read_micro(
    sums: Sums, name: str, why: str | Callable[[Site], str], sites: Sequence[Site] | None = None
) -> list[Reading]:
    """Ratio of sums with a 95% interval over sentences at every site, or why there is none."""
    chosen = list(sums) if sites is None else sites
    kept = [f"{name}_{part}" for part in _MICRO]
    return _readings(sums, name, why, chosen, kept, 1, stats.ratio_interval)


def over_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Sum `[batch, head, query]` over the chosen rows `[batch, query]`, to `[batch, head]`."""
    return (values * rows[:, None, :].to(values.dtype)).sum(-1, dtype=torch.float64)


def over_each(values: Tensor, *rows: Tensor) -> tuple[Tensor, ...]:
    """The same over several choices of rows, in one product."""
    chosen = torch.stack([one.double() for one in rows], dim=-1)
    return (values.double() @ chosen).unbind(-1)


class BatchCache(Generic[Made]):
    """What all sites of a stack share on one batch: made once, dropped with the batch."""

    def __init__(self) -> None:
        self._batch: object = None
        self._made: dict[Hashable, Made] = {}

    def get(self, batch: object, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made for a batch under a key, or what `make` gives now."""
        if batch is not self._batch:
            self._batch, self._made = batch, {}
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


# --- Readings of all tallies become one table ---------------------------------------------------


def tabulate(
    anatomy: Anatomy,
    readings: Iterable[Reading],
    columns: Sequence[Column],
    missing: dict[str, str] | None = None,
) -> HeadTable:
    """A row for each head and a column for each description; NaN where nothing was read.

    `missing` gives the reason for columns that no tally fills.
    """
    filled = {
        part: {column.name: np.full(len(anatomy.heads), np.nan) for column in columns}
        for part in ("value", "low", "high")
    }
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    for reading in readings:
        if reading.column in filled["value"]:
            for part, values in filled.items():
                values[reading.column][anatomy.spans[reading.site]] = getattr(reading, part)
            if reading.note:
                reasons[reading.column].setdefault(reading.site.stack, reading.note)
    notes = {
        name: "; ".join(f"{stack}: {why}" for stack, why in by_stack.items())
        for name, by_stack in reasons.items()
    }
    return HeadTable.of(
        anatomy.heads,
        filled["value"],
        columns,
        low=_possible(filled["low"], columns),
        high=_possible(filled["high"], columns),
        notes=notes | (missing or {}),
    )


def _possible(bounds: dict[str, Array], columns: Sequence[Column]) -> dict[str, Array]:
    """Bounds where there are any, and that the column can reach: few sentences give wide ones."""
    return {
        column.name: bounds[column.name]
        if column.range == (None, None)
        else np.clip(bounds[column.name], *column.range)
        for column in columns
        if not np.isnan(bounds[column.name]).all()
    }
