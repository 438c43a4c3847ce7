"""What is read from an attention map: the quantities of its rows, what a tally needs of them
(`Needs`), and what a tap shows of one site, or of several, for one batch (`Sighting`).

Entropy, distance and the mass on separators are Clark et al.'s (BlackBoxNLP 2019, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.errors import ModelError
from headcount.models import Site, SiteGroup, Subject
from headcount.text import Batch, Side, bare_side

# --- What tallies need of an attention map -------------------------------------------------------


@dataclass(frozen=True)
class Needs:
    """Row quantities of a map `[batch, head, query, key]`; a union serves several tallies.

    `maps` keeps the map itself, `tiles` lets it be read some rows at a time (`Sighting.tiles`), so
    that no map of a long text exists; everything else is one number a row, so that a fused kernel
    can serve it without a map and without a change in any tally.

    `tops` is for the largest weight of each row and its key, once for every set of key classes
    that is left out (`frozenset({"separator"})`), `largest` for the weight alone; `masses` for
    the mass on a class; `offsets` for the weight at query + offset; `smoothed` for the entropy
    after Clark's smoothing.

    >>> (Needs(entropy=True) | Needs(offsets=frozenset({-1}))).offsets
    frozenset({-1})
    """

    maps: bool = False
    tiles: bool = False
    entropy: bool = False
    smoothed: float | None = None
    tops: frozenset[frozenset[str]] = frozenset()
    largest: frozenset[frozenset[str]] = frozenset()
    masses: frozenset[str] = frozenset()
    offsets: frozenset[int] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        if None not in (self.smoothed, other.smoothed) and self.smoothed != other.smoothed:
            raise ValueError("two tallies ask for entropies of different smoothing")
        return Needs(
            maps=self.maps or other.maps,
            tiles=self.tiles or other.tiles,
            entropy=self.entropy or other.entropy,
            smoothed=other.smoothed if self.smoothed is None else self.smoothed,
            tops=self.tops | other.tops,
            largest=self.largest | other.largest,
            masses=self.masses | other.masses,
            offsets=self.offsets | other.offsets,
        )


# --- Row quantities of an attention map ---------------------------------------------------------
# Everything here is a plain function of the map, so that the definitions can be read and tested by
# themselves; `wiring/rows.py` gives the same numbers where there is no map.


def entropy(maps: Tensor) -> Tensor:
    """Entropy of each row in nats, `[batch, head, query]`.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, -0.0000])
    """
    # p log p with the logarithm of the smallest number at 0, in one spare map: torch.special.entr
    # is exact there too, but several times slower on a CPU.
    spare = maps.clamp_min(torch.finfo(maps.dtype).tiny)
    if numpy_is_faster(spare):
        np.log(spare.numpy(), out=spare.numpy())
    else:
        spare.log_()
    return spare.mul_(maps).sum(-1).neg_()


def numpy_is_faster(maps: Tensor) -> bool:
    """Whether NumPy's logarithm, argmax and sum of products, on one core, beat torch's: up to 3."""
    exact = maps.dtype in (torch.float32, torch.float64)  # NumPy knows no bfloat16
    on_cpu = maps.device.type == "cpu" and not maps.requires_grad
    return on_cpu and exact and torch.get_num_threads() <= 3


def smoothed_entropy(maps: Tensor, amount: float, real: Tensor) -> Tensor:
    """Entropy of (1-s) a + s/n over the n real keys, as Clark's program has it (s = 0.0001)."""
    share = amount / real.sum(-1, dtype=maps.dtype)[:, None, None, None]
    mixed = maps * (1 - amount) + share * real[:, None, None, :]
    return entropy(mixed)


def top(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and key of each row's largest weight; of equal weights the first key counts.

    >>> top(torch.tensor([[[[0.2, 0.4, 0.4]]]]))[1].item()
    1
    """
    if numpy_is_faster(maps):
        return maps.amax(-1), torch.from_numpy(maps.numpy().argmax(-1))
    weight, key = maps.max(dim=-1)
    return weight, key


@contextmanager
def left_out(maps: Tensor, allowed: Tensor | None, hidden: Columns | None) -> Iterator[Tensor]:
    """The map with no weight on keys that are not allowed `[batch, key]`; None allows all.

    Few keys (`hidden`) are hidden in the map itself and put back afterwards, which spares a copy
    of it.
    """
    if allowed is None:
        yield maps
        return
    keys = maps.shape[-1]
    if hidden is None or not _few(hidden, maps) or 0 in maps.stride():
        yield maps * allowed[:, None, None, :keys].to(maps.dtype)
        return
    places = _each(hidden, keys)
    kept = [maps[text, :, :, column].clone() for text, column in places]
    try:
        for text, column in places:
            maps[text, :, :, column] = 0
        yield maps
    finally:
        for (text, column), weights in zip(places, kept, strict=True):
            maps[text, :, :, column] = weights


def at_offset(maps: Tensor, offset: int, places: Tensor | None = None) -> Tensor:
    """Weight on the key at query + offset, `[batch, head, query]`; 0 where there is no such key.

    `places` `[batch, query]` are the rows' own places, where they are not 0, 1, 2 and so on.

    >>> at_offset(torch.eye(3)[None, None], 0)
    tensor([[[1., 1., 1.]]])
    """
    queries, keys = maps.shape[-2:]
    if places is not None:
        wanted = places[:, None, :, None].expand(-1, maps.shape[1], -1, 1) + offset
        there = (wanted >= 0) & (wanted < keys)
        return (maps.gather(-1, wanted.clamp(0, keys - 1)) * there)[..., 0]
    diagonal = maps.diagonal(offset, dim1=-2, dim2=-1)
    before = max(0, -offset)
    after = queries - before - diagonal.shape[-1]
    return torch.nn.functional.pad(diagonal, (before, max(0, after)))[..., :queries]


#: Cells of a mask that are read at once.
_CELLS = 2**26


def visible_keys(mask: Tensor | None, queries: int, keys: Tensor, causal: bool) -> Tensor:
    """How many keys each query may attend to, `[batch, query]`.

    Read from the attention mask where there is one (sliding windows differ by layer), else
    from the real keys `[batch, key]` and causality.
    """
    if mask is not None and mask.dim() == 4:
        rows = mask.shape[2]
        step = max(1, _CELLS // max(1, keys.numel()))
        parts = [
            (unmasked(mask[:, :1, start : start + step]) & keys[:, None, None, :]).sum(-1)[:, 0]
            for start in range(0, rows, step)
        ]
        return torch.cat(parts, dim=-1).expand(keys.shape[0], queries)
    if causal:
        return keys.cumsum(-1)[:, :queries]
    return keys.sum(-1, keepdim=True).expand(-1, queries)


def unmasked(mask: Tensor) -> Tensor:
    """True where a mask, itself true and false or added to the scores, lets a query see a key."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def uniform_entropy(visible: Tensor) -> Tensor:
    """What uniform attention over the visible keys would give: ln of their number."""
    return visible.clamp_min(1).to(torch.float64).log()


def of_class(side: Side, name: str) -> Tensor:
    """True at the real tokens of a class, `[batch, token]`.

    Classes are first (the first real token, whatever it is), separator, special, punctuation and
    stops, which are exactly "." and ",".
    """
    if name == "first":
        return side.real & (side.real.cumsum(-1) == 1)
    members: Tensor = getattr(side, name)
    return members & side.real


# --- What is asked of the rows of one stack on one batch ----------------------------------------


@dataclass(frozen=True)
class Asked:
    """What `needs` means for the tokens of one batch: made once for all layers of a stack.

    Counts of a class are known on the host before the batch moves to a device, so that nothing
    waits for the device later.
    """

    needs: Needs
    queries: Side
    keys: Side
    #: For each class, which keys belong to it `[batch, key]`.
    classes: Mapping[str, Tensor] = field(default_factory=dict)
    #: For each set of classes that is left out, the keys that stay `[batch, key]`; None: all.
    allowed: Mapping[frozenset[str], Tensor | None] = field(default_factory=dict)
    #: The places of a sample of rows `[batch, row]`, and how many rows each stands for.
    places: Tensor | None = None
    weights: Tensor | None = None

    @classmethod
    def of(cls, needs: Needs, queries: Side, keys: Side, sample: RowSample | None = None) -> Asked:
        """What is asked of these queries and keys."""
        classes = {name: of_class(keys, name) for name in sorted(needs.masses)}
        allowed: dict[frozenset[str], Tensor | None] = {}
        for name in needs.tops | needs.largest:
            kept = _kept(keys, name)
            # Padding has no weight in a map; among scores it must be left out as well.
            allowed[name] = None if torch.equal(kept, keys.real) else kept
        places, weights = (None, None) if sample is None else sample.drawn(queries.real)
        return cls(needs, queries, keys, classes, allowed, places, weights)

    def to(self, device: torch.device) -> Asked:
        """The same on a device."""
        if self.keys.real.device == device:
            return self
        queries = self.queries.to(device)
        return self.on(queries, queries if self.keys is self.queries else self.keys.to(device))

    def on(self, queries: Side, keys: Side) -> Asked:
        """The same for sides that were moved to a device already."""
        device = keys.real.device
        # Classes and kept keys are told by the sides: cheaper there than to send them after.
        allowed = {
            name: None if kept is None else _kept(keys, name) for name, kept in self.allowed.items()
        }
        return replace(
            self,
            queries=queries,
            keys=keys,
            classes={name: of_class(keys, name) for name in self.classes},
            allowed=allowed,
            places=None if self.places is None else self.places.to(device, non_blocking=True),
            weights=None if self.weights is None else self.weights.to(device, non_blocking=True),
        )

    @cached_property
    def texts(self) -> list[Asked]:
        """The same for each text alone."""

        def of(side: Side, text: slice) -> Side:
            parts: dict[str, Any] = {name: getattr(side, name)[text] for name in side.parts}
            return replace(side, **parts, tokens=side.tokens[text], words=None)

        def cut(part: Tensor | None, text: slice) -> Any:
            return None if part is None else part[text]

        return [
            replace(
                self,
                queries=of(self.queries, text),
                keys=of(self.keys, text),
                classes={name: one[text] for name, one in self.classes.items()},
                allowed={name: cut(one, text) for name, one in self.allowed.items()},
                places=cut(self.places, text),
                weights=cut(self.weights, text),
            )
            for text in (slice(n, n + 1) for n in range(self.keys.real.shape[0]))
        ]

    @cached_property
    def members(self) -> dict[str, tuple[Tensor, Tensor, Columns | None]]:
        """For each class, where its tokens are."""
        return {
            name: (*_members(chosen), _columns(chosen)) for name, chosen in self.classes.items()
        }

    @cached_property
    def hidden(self) -> dict[frozenset[str], Columns | None]:
        """For each set of classes that is left out, where its tokens are."""
        return {
            name: None if kept is None else _columns(self.keys.real & ~kept)
            for name, kept in self.allowed.items()
        }

    @cached_property
    def class_columns(self) -> Tensor:
        """A column of 0 and 1 for each class, `[batch, key, 16]`, for a product on the GPU."""
        chosen = torch.stack(list(self.classes.values()), dim=-1).half()
        return torch.nn.functional.pad(chosen, (0, 16 - chosen.shape[-1]))

    @cached_property
    def kept_columns(self) -> Tensor:
        """The keys that stay for each set that is left out, `[set, batch, key]`."""
        kept = [self.keys.real if one is None else one for one in self.allowed.values()]
        return torch.stack(kept or [self.keys.real]).to(torch.uint8)

    @cached_property
    def every_place(self) -> Tensor:
        """The places of all queries."""
        length = self.queries.real.shape[1]
        return torch.arange(length, device=self.queries.real.device, dtype=torch.int32)

    @cached_property
    def offset_numbers(self) -> Tensor:
        """The chosen offsets, in their order."""
        return _on_device(tuple(sorted(self.needs.offsets)) or (0,), self.keys.real.device)

    @cached_property
    def asking(self) -> Side:
        """The side of the queries, or of the sample of them."""
        if self.places is None or self.weights is None:
            return self.queries
        taken = self.queries.at(self.places)
        return replace(taken, real=taken.real & (self.weights > 0))


@lru_cache
def _on_device(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Numbers that were sent to a device once: a transfer cannot be recorded."""
    return torch.tensor(numbers, dtype=torch.int32).to(device)


def _kept(keys: Side, without: frozenset[str]) -> Tensor:
    """The real keys of no class that is left out."""
    kept = keys.real
    for name in without:
        kept = kept & ~of_class(keys, name)
    return kept


#: Texts of a batch, and the places of some of their tokens.
Columns = list[tuple[slice, list[int]]]


def _columns(chosen: Tensor) -> Columns | None:
    """The places that are chosen, text by text, at once where they are the same in all.

    On a GPU they are not known: to ask makes it wait.

    >>> _columns(torch.tensor([[True, False, True], [True, False, True]]))
    [(slice(0, 2, None), [0, 2])]
    """
    if chosen.device.type != "cpu":
        return None
    places = [row.nonzero()[:, 0].tolist() for row in chosen]
    if places and all(one == places[0] for one in places):
        return [(slice(0, len(places)), places[0])]
    return [(slice(n, n + 1), one) for n, one in enumerate(places)]


def _few(columns: Columns, maps: Tensor) -> bool:
    """Whether to go through columns one by one is faster than through the whole map."""
    counts = [len(places) for _, places in columns]
    some = sum(counts)
    return some <= 48 and some * _A_STEP <= maps.numel() and max(counts) * 8 <= maps.shape[-1]


#: As many cells of a map take as long as a step through a column.
_A_STEP = 2**14


def _each(columns: Columns, keys: int) -> list[tuple[slice, int]]:
    """Texts and columns one by one, as far as the map goes."""
    return [(text, place) for text, places in columns for place in places if place < keys]


def _members(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Places `[batch, n]` that are chosen, moved to the front, and which of them hold one."""
    most = int(chosen.sum(-1).max()) if chosen.numel() else 0
    order = torch.argsort((~chosen).int(), dim=-1, stable=True)[:, :most]
    return order, chosen.gather(-1, order)


@dataclass(frozen=True)
class RowSample:
    """Some rows of each long text: the first, and others drawn without regard to what they are.

    Each text has a draw of its own, from `seed` and its number, so that batches do not matter. The
    first row stands for itself, the others for equal shares of the rest, so that a weighted sum
    over the sample is an unbiased estimate of the sum over all rows (Horvitz & Thompson 1952).
    """

    rows: int
    seed: int = 0
    #: The number of each text of the batch.
    texts: tuple[tuple[int, int], ...] = ()

    def drawn(self, real: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Places `[batch, row]` in their order, and weights; None where no text is longer."""
        lengths = real.sum(-1).tolist()
        if max(lengths, default=0) <= self.rows:
            return None, None
        places = torch.zeros(len(lengths), self.rows, dtype=torch.long)
        weights = torch.zeros(len(lengths), self.rows, dtype=torch.float64)
        for row, length in enumerate(lengths):
            own = real[row].nonzero()[:, 0]
            taken = min(length, self.rows)
            if length > self.rows:
                text = self.texts[row] if row < len(self.texts) else (row, 0)
                number = int.from_bytes(
                    sha256(f"{self.seed} {text}".encode()).digest()[:7], "little"
                )
                draw = torch.randperm(length - 1, generator=torch.Generator().manual_seed(number))
                own = torch.cat([own[:1], own[1:][draw[: taken - 1].sort().values]])
            places[row, :taken] = own
            # Places that are left over repeat the first, and weigh nothing.
            places[row, taken:] = int(own[0]) if length else 0
            weights[row, :taken] = 1.0
            if length > self.rows:
                weights[row, 1:taken] = (length - 1) / (taken - 1)
        return places, weights


# --- What a tap shows of one site for one batch -------------------------------------------------

#: Cells of a tile: small enough for the caches of a CPU, large enough to keep a GPU busy; and of
#: the maps of a batch that are kept where tallies read maps: 256 MB in float32. A text whose map
#: has more than an eighth of these is read in tiles, which then are faster too.
TILE = {"cpu": 2**21, "cuda": 2**25, "kept": 2**26}

#: Rows `[batch, head, row, key]` of a map at some places `[row]`.
RowReader = Callable[[Tensor], Tensor]


def tile_rows(device: torch.device, row: int) -> int:
    """How many queries a tile has, by the cells of one."""
    return max(1, TILE.get(device.type, TILE["cuda"]) // max(1, row))


@dataclass(frozen=True)
class Sighting:
    """Quantities of one site's map `[batch, head, query, key]`, as far as needed.

    `queries` and `keys` are the text sides the rows and columns stand for. Rows of padding
    hold no meaning: weigh by `queries.real`. Where rows are sampled, `places` tells which they
    are, and `weigh` how many rows each stands for. Several sites of a stack may be shown at once
    (`site` is a `SiteGroup`, their heads lie side by side): `by_site` takes them apart.
    """

    site: Site
    batch: Batch
    queries: Side
    keys: Side
    visible: Tensor
    maps: Tensor | None = None
    entropy: Tensor | None = None
    smoothed_entropy: Tensor | None = None
    tops: dict[frozenset[str], tuple[Tensor, Tensor]] = field(default_factory=dict)
    largest: dict[frozenset[str], Tensor] = field(default_factory=dict)
    masses: dict[str, Tensor] = field(default_factory=dict)
    offsets: dict[int, Tensor] = field(default_factory=dict)
    places: Tensor | None = None
    weights: Tensor | None = None
    #: Gives the rows of the map at some places, where it is too large to be kept.
    reader: RowReader | None = None

    @property
    def device(self) -> torch.device:
        """Where its numbers are."""
        return self.queries.real.device

    @property
    def readable(self) -> bool:
        """Whether the map can be read, whole or in tiles."""
        return self.maps is not None or self.reader is not None

    def tiles(self) -> Iterator[Tensor]:
        """Places of queries `[row]`, tile by tile: all at once where there is a map."""
        count = self.queries.real.shape[1]
        size = self.queries.real.shape[0] * self.site.heads * self.keys.real.shape[1]
        step = count if self.reader is None else tile_rows(self.device, size)
        yield from torch.arange(count, device=self.device).split(max(step, 1))

    def rows_at(self, places: Tensor) -> Tensor:
        """The rows of the map at these places, `[batch, head, row, key]`, in float32."""
        if self.maps is None:
            assert self.reader is not None
            return self.reader(places)
        whole = len(places) == self.maps.shape[2]
        return self.maps if whole else self.maps[:, :, places]

    def weigh(self, rows: Tensor) -> Tensor:
        """Which rows count, `[batch, query]`, with weights where a row represents several."""
        return rows if self.weights is None else rows * self.weights

    def at_places(self, values: Tensor) -> Tensor:
        """Values at every place of the queries, `[batch, place]`, for the rows that are shown."""
        return values if self.places is None else values.gather(1, self.places)

    def over_places(self, rows: Tensor) -> Tensor:
        """The rows that are shown, `[batch, query]`, weighed, at their places among all."""
        if self.places is None:
            return rows
        room = torch.zeros(
            rows.shape[0], self.keys.real.shape[1], dtype=torch.float64, device=rows.device
        )
        return room.scatter_add_(1, self.places, self.weigh(rows))

    def by_site(self) -> Iterator[Sighting]:
        """One sighting for each site."""
        if not isinstance(self.site, SiteGroup):
            yield self
            return
        start = 0
        for site in self.site.members:
            heads = slice(start, start + site.heads)
            start += site.heads
            yield replace(
                self,
                site=site,
                entropy=_cut(self.entropy, heads),
                smoothed_entropy=_cut(self.smoothed_entropy, heads),
                tops={name: (a[:, heads], b[:, heads]) for name, (a, b) in self.tops.items()},
                largest={name: weight[:, heads] for name, weight in self.largest.items()},
                masses={name: mass[:, heads] for name, mass in self.masses.items()},
                offsets={offset: part[:, heads] for offset, part in self.offsets.items()},
            )


def _cut(values: Tensor | None, heads: slice) -> Tensor | None:
    return None if values is None else values[:, heads]


#: Tiles that several sites may have at once.
_AT_ONCE = 4


def tiles_of(several: Sequence[Sighting]) -> Iterator[Tensor]:
    """Places of queries `[row]` of sites that are read at once, a few tiles in all."""
    step = min(len(next(one.tiles())) for one in several)
    if any(one.maps is None for one in several):
        step = max(1, step * min(_AT_ONCE, len(several)) // len(several))
    yield from torch.cat([*several[0].tiles()]).split(step)


def look(site: Site, maps: Tensor, mask: Tensor | None, batch: Batch, needs: Needs) -> Sighting:
    """Reduce a whole map to what is needed."""
    queries = _side(batch.query(site.stack), maps, -2)
    keys = _side(batch.key(site.stack), maps, -1)
    asked = Asked.of(needs, queries, keys)
    visible = visible_keys(mask, maps.shape[-2], keys.real, site.causal)
    shown = in_float32(maps)
    kept = shown if needs.maps or needs.tiles else None
    return Sighting(site, batch, queries, keys, visible, kept, **of_map(shown, asked))


def in_float32(maps: Tensor) -> Tensor:
    """The map for statistics: half precision is too coarse to add up."""
    maps = maps.detach()
    return maps if maps.dtype in (torch.float32, torch.float64) else maps.float()


def of_map(
    maps: Tensor, asked: Asked, places: Tensor | None = None, entropies: Tensor | None = None
) -> dict[str, Any]:
    """The row quantities of a map, as a sighting holds them; `places` as in `at_offset`.

    A map may end before the last key, where no row sees it. `entropies` are those of the rows,
    where they are known already.
    """
    needs, seen = asked.needs, maps.shape[-1]
    smoothed = None
    if needs.smoothed is not None:
        whole = torch.nn.functional.pad(maps, (0, asked.keys.real.shape[-1] - seen))
        smoothed = smoothed_entropy(whole, needs.smoothed, asked.keys.real)
    if needs.entropy and entropies is None:
        entropies = entropy(maps)
    tops, largest = {}, {}
    for name, allowed in asked.allowed.items():
        with left_out(maps, allowed, asked.hidden[name]) as kept:
            if name in needs.tops:
                tops[name] = top(kept)
            if name in needs.largest:
                largest[name] = tops[name][0] if name in tops else kept.amax(-1)
    return {
        "entropy": entropies,
        "smoothed_entropy": smoothed,
        "tops": tops,
        "largest": largest,
        "masses": {name: class_mass(maps, *found) for name, found in asked.members.items()},
        "offsets": {offset: at_offset(maps, offset, places) for offset in sorted(needs.offsets)},
    }


def class_mass(maps: Tensor, places: Tensor, there: Tensor, columns: Columns | None) -> Tensor:
    """Mass of each row on the keys at some places `[batch, n]`, `[batch, head, query]`.

    Places beyond the map have none. `columns` are the same places text by text, where known.

    >>> class_mass(torch.tensor([[[[0.2, 0.3, 0.5]]]]), torch.tensor([[0, 2]]),
    ...     torch.tensor([[True, True]]), None).item()
    0.699999988079071
    """
    batch, heads, queries, keys = maps.shape
    if columns is not None and _few(columns, maps):
        found = maps.new_zeros(batch, heads, queries)
        for text, place in _each(columns, keys):
            found[text] += maps[text, :, :, place]
        return found
    places, there = places.clamp_max(keys - 1), there & (places < keys)
    if places.shape[1] * 4 <= keys:  # the few columns that count, rather than all of them
        chosen = places[:, None, None, :].expand(-1, heads, queries, -1)
        return (maps.gather(-1, chosen) * there[:, None, None, :]).sum(-1)
    column = torch.zeros(batch, keys, dtype=maps.dtype, device=maps.device)
    # Added: places beyond the map all end on its last key, where a true one may stand.
    column.scatter_add_(1, places, there.to(maps.dtype))
    flat = maps.reshape(batch, heads * queries, keys)
    return torch.bmm(flat, column[..., None]).view(batch, heads, queries)


def _side(side: Side | None, maps: Tensor, axis: int) -> Side:
    """A side on the device of the map: a model's layers may be spread over several.

    Where only the model knows its tokens (image patches, audio frames), the map tells how many.
    """
    if side is None:
        return unknown_side(maps.shape[0], maps.shape[axis], maps.device)
    return side if side.real.device == maps.device else side.to(maps.device)


def unknown_side(rows: int, tokens: int, device: torch.device) -> Side:
    """A side of tokens of which nothing is known but their number."""
    real = torch.ones(rows, tokens, dtype=torch.bool, device=device)
    return bare_side(real.long(), real)


# --- Token ids that a model can embed -----------------------------------------------------------


def check_ids(subject: Subject, inputs: Mapping[str, Tensor]) -> None:
    """Raise when the tokenizer made an id that the model has no embedding for."""
    for name in ("input_ids", "decoder_input_ids"):
        ids = inputs.get(name)
        rows = known_ids(subject, name)
        if ids is not None and rows is not None and ids.numel() and int(ids.max()) >= rows:
            raise ModelError(
                f"{name} holds the token id {int(ids.max())} and {subject.name} embeds {rows}, "
                "from 0: this is not the tokenizer that the model was trained with."
            )


def known_ids(subject: Subject, name: str) -> int | None:
    """How many tokens the side's embedding has; None where that is not known."""
    model: Any = subject.inner
    if name == "decoder_input_ids":
        model = model.get_decoder() if hasattr(model, "get_decoder") else None
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (AttributeError, NotImplementedError):
        return None
