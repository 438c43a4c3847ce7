"""Hits by sentence and relation, and their figures on each split: accuracy, interval, baseline, p.

Choosing the best of many heads and the best of many offsets, and reporting both on the sentences
they were chosen on, flatters them. Sentences are therefore split in two: offsets and heads are
chosen on `select`, and judged on `report`. The naive numbers stand beside them under `all`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import StatsError, UsageError
from headcount.models import Site
from headcount.records import STACKS, Head
from headcount.stats import Alternative, read_sentences
from headcount.text import Rows, Words
from headcount.wiring import Needs, Sighting

# --- A window's own words, without room for the rest of a long text -----------------------------


def word_tiles(
    sighting: Sighting, words: Words, rows: Rows = "mean"
) -> Iterator[tuple[slice, Tensor]]:
    """Maps between words, some query words at a time: which, and `[batch, head, those, word]`.

    All words at once where there is a map between tokens; of a long text there is none.
    """
    if sighting.maps is not None:
        yield slice(0, words.there.shape[1]), word_maps(sighting.maps, words, words, rows=rows)
        return
    step = len(next(sighting.tiles()))
    count = words.there.shape[1]
    for start in range(0, max(count, 1), step):
        some = slice(start, min(start + step, count))
        places = words.pieces[:, some].flatten(0, 1).any(0).nonzero()[:, 0]
        own = replace(words, pieces=words.pieces[:, some, places], there=words.there[:, some])
        # Words of another window have no row; the first stands in, and none of it is taken.
        taken = sighting.rows_at(places if len(places) else places.new_zeros(1))
        yield some, word_maps(taken[:, :, : len(places)], own, words, rows=rows)


def compact_words(words: Words) -> Words:
    """The words that are there, moved up to the front of each row, in their order.

    A window keeps the numbering of its whole text, which may have thousands of words; maps between
    words would be as large.

    >>> pieces = torch.tensor([[[False, False], [True, False], [False, False], [False, True]]])
    >>> compact_words(Words(pieces, pieces.any(-1), [None])).pieces.int().tolist()
    [[[1, 0], [0, 1]]]
    """
    order = torch.argsort((~words.there).int(), dim=1, stable=True)
    most = int(words.there.sum(1).max()) if words.there.numel() else 0
    order = order[:, :most]
    pieces = words.pieces.gather(1, order[..., None].expand(-1, -1, words.pieces.shape[-1]))
    return Words(pieces, words.there.gather(1, order), [None] * len(words))


# --- Hits by sentence and relation, for every head and every fixed offset -----------------------
# Arcs of one sentence are right or wrong together, so counts are kept sentence by sentence; only
# relations that a sentence has take room (a cell), two bytes a head.

#: The name under which every word counts, whatever its relation.
ALL = "all"

Small = NDArray[np.int16]


class Unit(NamedTuple):
    """A sentence: its number in the corpus, and what it says in short.

    Both, so that shards that count from 0 each keep their sentences apart.
    """

    number: int
    digest: int

    @classmethod
    def of(cls, number: int, text: str) -> Unit:
        """The unit of a text.

        >>> Unit.of(3, "Rain fell.").number
        3
        """
        return cls(number, int.from_bytes(blake2b(text.encode(), digest_size=7).digest()))


def resample_units(words: Words, index: Sequence[int]) -> list[Unit]:
    """What is drawn together in a resample: the document of a passage, else the text."""
    units = []
    for sentence, number in zip(words.sentences, index, strict=True):
        document = None if sentence is None else sentence.comments.get("doc")
        text = "" if sentence is None else sentence.text
        units.append(Unit.of(number, text) if document is None else Unit.of(0, f"doc {document}"))
    return units


@dataclass(frozen=True)
class BatchCells:
    """The cells of one batch, and what every head is measured against there.

    Arrays have one row a cell; counts are by direction.
    """

    units: tuple[Unit, ...]
    #: Which of the units a cell belongs to.
    unit: Small
    labels: tuple[str, ...]
    arcs: Mapping[str, Small]
    #: Hits of each fixed offset, ``[cell, offset]``.
    offsets: Mapping[str, Small]


class SiteHits(NamedTuple):
    """One site's hits on one batch: ``[cell, head]`` by direction."""

    cells: BatchCells
    hits: Mapping[str, Small]


class Counts(NamedTuple):
    """One relation and direction, one row a sentence that has it."""

    unit: NDArray[np.int64]
    #: Number of arcs, ``[sentence]``.
    arcs: NDArray[np.int64]
    #: ``[sentence, head]``.
    hits: NDArray[np.int64]
    #: ``[sentence, offset]``.
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class RelationCounts:
    """The counts of one stack over the whole corpus, cells in the order of their sentences."""

    heads: tuple[Head, ...]
    #: The offsets that were tried.
    tried: tuple[int, ...]
    units: tuple[Unit, ...]
    unit: NDArray[np.int64]
    labels: NDArray[np.str_]
    arcs: Mapping[str, Small]
    hits: Mapping[str, Small]
    offsets: Mapping[str, Small]

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that were counted."""
        return tuple(self.arcs)

    def relations(self, subtypes: bool = False) -> list[str]:
        """The relations that occur, the most frequent first, as a whole or without subtypes."""
        names = self.labels if subtypes else self._universal
        names, where = np.unique(names, return_inverse=True)
        most = max(self.arcs.values(), key=lambda arcs: int(arcs.sum()))
        sums = np.bincount(where, weights=most, minlength=len(names))
        return [str(name) for name in names[np.argsort(-sums, kind="stable")]]

    def of(self, relation: str, direction: str, subtypes: bool = False) -> Counts:
        """The counts of a relation by sentence; `all` is every word."""
        if relation == ALL:
            cells = np.arange(len(self.unit))
        else:
            names = self.labels if subtypes or ":" in relation else self._universal
            cells = np.flatnonzero(names == relation)
        unit, starts = np.unique(self.unit[cells], return_index=True)
        parts = (self.arcs[direction], self.hits[direction], self.offsets[direction])
        sums = [_summed(part[cells], starts) for part in parts]
        asked = sums[0] > 0
        return Counts(unit[asked], *(part[asked] for part in sums))

    @cached_property
    def _universal(self) -> NDArray[np.str_]:
        return np.array([universal(str(label)) for label in self.labels], dtype=np.str_)


def universal(label: str) -> str:
    """A relation without its subtype.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return label.partition(":")[0]


def counts_of(
    seen: Mapping[tuple[Head, ...], Sequence[SiteHits]], tried: Sequence[int]
) -> RelationCounts:
    """Put a stack's batches together: what each of its sites (its heads) saw."""
    first = next(iter(seen.values()))
    units = sorted({unit for cells, _ in first for unit in cells.units})
    number = {unit: place for place, unit in enumerate(units)}
    unit, labels, order = _keys(first, number)
    directions = tuple(first[0].hits)
    orders = [order if _same(first, site) else _keys(site, number)[2] for site in seen.values()]
    hits = {
        d: np.concatenate(
            [
                _joined(h[d] for _, h in site)[o]
                for site, o in zip(seen.values(), orders, strict=True)
            ],
            axis=1,
        )
        for d in directions
    }
    return RelationCounts(
        heads=tuple(head for heads in seen for head in heads),
        tried=tuple(tried),
        units=tuple(units),
        unit=unit[order],
        labels=labels[order],
        arcs={d: _joined(cells.arcs[d] for cells, _ in first)[order] for d in directions},
        hits=hits,
        offsets={d: _joined(cells.offsets[d] for cells, _ in first)[order] for d in directions},
    )


def _same(one: Sequence[SiteHits], other: Sequence[SiteHits]) -> bool:
    """Whether two sites met the same batches in the same order."""
    return [id(cells) for cells, _ in one] == [id(cells) for cells, _ in other]


def _keys(
    seen: Sequence[SiteHits], number: Mapping[Unit, int]
) -> tuple[NDArray[np.int64], NDArray[np.str_], NDArray[np.intp]]:
    """Each cell's sentence and relation, and the order that sorts by them."""
    unit = np.concatenate(
        [
            np.array([number[u] for u in cells.units], dtype=np.int64)[cells.unit]
            for cells, _ in seen
        ]
    )
    labels = np.concatenate([np.array(cells.labels, dtype=np.str_) for cells, _ in seen])
    return unit, labels, np.lexsort((labels, unit))


def _joined(parts: Iterable[Small]) -> Small:
    return np.concatenate(list(parts))


def _summed(cells: Small, starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """Cells of one sentence added up."""
    if not len(starts):
        return np.zeros((0, *cells.shape[1:]), dtype=np.int64)
    return np.add.reduceat(cells, starts, axis=0, dtype=np.int64)


@dataclass
class HitsTally:
    """Hits of every head by cell; parts of a corpus merge by putting their cells together."""

    #: The classes that a survey which goes on reads again.
    kept: ClassVar[tuple[type, ...]] = (SiteHits, BatchCells, Unit)
    _seen: dict[Site, list[SiteHits]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False, compare=False
    )
    #: Sites whose attention was not a number.
    _broken: set[Site] = field(default_factory=set, init=False, repr=False, compare=False)
    #: Sites that were not measured, and why.
    _skipped: dict[Site, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    needs = Needs(tiles=True)

    @property
    def tried(self) -> tuple[int, ...]:
        """The offsets, or the numbers of other baselines."""
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        """Take in the counts of another part of the corpus."""
        for site, seen in other._seen.items():
            self._seen[site].extend(seen)
        self._broken |= other._broken
        self._skipped = other._skipped | self._skipped

    def _tiles(
        self, sighting: Sighting, words: Words, rows: Rows
    ) -> Iterator[tuple[slice, Tensor]]:
        """Maps between words as `word_tiles` gives them; a site where one is no number is noted."""
        for some, maps in word_tiles(sighting, words, rows):
            if bool(torch.isnan(maps.sum())):
                self._broken.add(sighting.site)
            yield some, maps

    def counts(self) -> list[RelationCounts]:
        """The counts by sentence, one for each stack."""
        by_stack: dict[str, dict[tuple[Head, ...], list[SiteHits]]] = defaultdict(dict)
        for site in sorted(self._seen, key=lambda s: (STACKS.index(s.stack), s.layer, s.call)):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, self.tried) for seen in by_stack.values()]


def hits_by_cell(cell: Tensor, hits: Tensor, cells: int) -> Small:
    """Hits ``[arc, ...]`` added up in their cells, ``[cell, ...]``."""
    sums = torch.zeros(cells, *hits.shape[1:], dtype=torch.int16, device=hits.device)
    return sums.index_add_(0, cell, hits.to(torch.int16)).cpu().numpy()


def number_cells(
    keys: Sequence[tuple[int, str]], device: torch.device | str = "cpu"
) -> tuple[list[tuple[int, str]], Tensor]:
    """The cells (row and label) in order, and the number of each key's cell."""
    cells = sorted(set(keys))
    number = {key: place for place, key in enumerate(cells)}
    return cells, torch.tensor([number[key] for key in keys], dtype=torch.long, device=device)


# --- The figures of one relation and direction --------------------------------------------------

#: Where heads and offsets are chosen, where they are judged, and both together (naive).
SPLITS = ("select", "report", "all")

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class HitsTest:
    """How accuracies are judged.

    The null hypothesis: on `report`, the head is right no more often than the baseline (of offsets
    the one that was best on `select`), paired by text (exact sign flips). Holm corrects over all
    that stands in a frame against one kind of baseline; Benjamini-Hochberg stands beside it.
    """

    #: Relations and kinds with fewer arcs are shown and not tested.
    support: int = 100
    level: float = 0.05
    draws: int = 2000
    confidence: float = 0.95
    #: Of the split and of the draws.
    seed: int = 0
    #: Of relations only these, and all of them must occur; with a subtype in the name, only that.
    relations: Sequence[str] | None = None


def in_selection(units: Sequence[Unit], seed: int = 0) -> Chosen:
    """Which sentences heads are chosen on: about half, by what they say and the seed alone.

    >>> in_selection([Unit.of(0, "Rain fell."), Unit.of(7, "Rain fell."), Unit.of(1, "It snowed.")])
    array([ True,  True, False])
    """
    drawn = [blake2b(f"{seed} {unit.digest}".encode(), digest_size=1).digest() for unit in units]
    return np.array([digest[0] < 128 for digest in drawn], dtype=bool)


def figures_by_split(
    counts: Counts,
    chosen: Chosen,
    baselines: Mapping[str, Sequence[tuple[int | None, dict[str, Any]]]],
    test: HitsTest,
) -> Iterator[dict[str, Any]]:
    """The figures of one relation or kind on each split, once for each baseline of that split.

    A baseline is its place in the counts, None where there is none, and its description.
    """
    best = counts.hits[chosen].sum(axis=0).argmax() if chosen.any() else -1
    enough = int(counts.arcs.sum()) >= test.support
    for split, rows in zip(SPLITS, (chosen, ~chosen, np.ones_like(chosen)), strict=True):
        if not rows.any():
            continue
        n, hits = counts.arcs[rows], counts.hits[rows]
        low = high = np.full(hits.shape[1], np.nan)
        if len(n) > 1:
            pairs = np.stack([hits, np.broadcast_to(n[:, None], hits.shape)], axis=-1)
            _, low, high = stats.bootstrap_interval(
                pairs, draws=test.draws, confidence=test.confidence, seed=test.seed
            )
        figures = {
            "split": split,
            "n": int(n.sum()),
            "texts": int(rows.sum()),
            "accuracy": hits.sum(axis=0) / n.sum(),
            "low": low,
            "high": high,
            "selected": (np.arange(hits.shape[1]) == best) & (split != "all"),
        }
        for place, about in baselines[split]:
            theirs = np.full(len(n), np.nan) if place is None else counts.offsets[rows, place]
            p: Any = np.nan
            if place is not None and split == "report" and enough and len(n) > 1:
                p = sign_flip_counts(hits - theirs[:, None], alternative="greater")
            yield {**figures, **about, "baseline": theirs.sum() / n.sum(), "p": p}


def best_offset(hits: NDArray[np.int64], tried: Sequence[int]) -> int | None:
    """The place of the offset that is right most often; among equals the nearest, then the left."""
    if not len(hits):
        return None
    sums = hits.sum(axis=0)
    equal = np.flatnonzero(sums == sums.max()).tolist()
    return int(min(equal, key=lambda place: (abs(tried[place]), tried[place])))


def figure_frame(heads: Sequence[Head], figures: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each head of each block of figures; one value for a block is that of its heads."""
    stack, layer, index = (np.array(part) for part in zip(*heads, strict=True))
    blocks = [{"stack": stack, "layer": layer, "head": index, **block} for block in figures]
    names = blocks[0] if blocks else {}
    parts = {name: [np.broadcast_to(b[name], len(heads)) for b in blocks] for name in names}
    frame = pd.DataFrame({name: np.concatenate(part) for name, part in parts.items()})
    return frame.assign(p_adjusted=np.nan, p_bh=np.nan)


def correct_tests(frame: pd.DataFrame, tested: pd.Index, level: float) -> None:
    """Correct these rows' tests together, in place; those of too few texts go, with the reason."""
    for count, rows in frame.loc[tested].groupby("texts"):
        try:
            stats.check_resolution(
                tests=len(tested), sentences=int(str(count)), level=level, alternative="greater"
            )
        except StatsError as error:
            frame.loc[rows.index, ["p", "note"]] = np.nan, str(error)
    p = frame.loc[tested, "p"].to_numpy(dtype=float)
    frame.loc[tested, "p_adjusted"] = stats.holm(p)
    frame.loc[tested, "p_bh"] = stats.benjamini_hochberg(p)


# --- The sign-flip test of whole-number differences ---------------------------------------------
# Hits of a head minus hits of its baseline are whole numbers, so the sum under random signs has a
# distribution with a closed form: no draws, no noise, and thousands of heads at once.

#: Smaller p values are given as this one: the sum that makes them is no more exact.
SMALLEST = 1e-13


# Heads times frequencies held at once: 64 MB a matrix.
_HELD = 2**23


def sign_flip_counts(
    differences: npt.ArrayLike, *, alternative: Alternative = "two-sided"
) -> Floats:
    """p of paired whole-number differences ``[sentence, head...]``: is their sum 0?

    Fisher 1935, section 21, over all patterns of signs. With c_k sentences of difference ±k the
    absolute differences that get a minus sign add up to U, whose characteristic function is
    the product of ((1 + exp(ikt)) / 2)^c_k; p is a value of U's distribution function, summed from
    it over as many frequencies as U has values. Two systems that count hits among the same arcs
    may be compared this way, for then their difference is that of the hits.

    >>> float(sign_flip_counts([2, 1, 0, 3, 1, 1, -1, 2], alternative="greater").round(6))
    0.039063
    """
    given = _read_whole(differences)
    flat = given.reshape(len(given), -1)
    size = max(1, _HELD // max(1, int(np.abs(flat).sum(axis=0).max())))
    parts = [flat[:, start : start + size] for start in range(0, flat.shape[1], size)]
    p = np.concatenate([_counts_p_values(part, alternative) for part in parts])
    return p.reshape(given.shape[1:])[()]


def _read_whole(differences: npt.ArrayLike) -> NDArray[np.int_]:
    given = read_sentences(differences, "differences")
    whole = np.rint(given).astype(np.int64)
    if np.any(whole != given):
        raise StatsError(
            f"The differences hold {given[whole != given][0]:g}, which is no whole number; "
            "use sign_flip for differences that are not counts."
        )
    return whole


def _counts_p_values(differences: NDArray[np.int_], alternative: Alternative) -> Floats:
    """The share of sign patterns whose sum is at least as far out, ``[head]``."""
    total, value = np.abs(differences).sum(axis=0), differences.sum(axis=0)
    far = {"greater": value, "less": -value, "two-sided": np.abs(value)}[alternative]
    most = int(np.abs(differences).max(initial=1))
    # How many sentences differ by 1, by 2, ..., [head, size].
    sizes = np.stack([(np.abs(differences) == k).sum(axis=0) for k in range(1, most + 1)], axis=1)
    p = _at_most((total - far) // 2, total, sizes)
    p = np.where(alternative == "two-sided", 2 * p, p)
    fewest = 2.0 ** ((alternative == "two-sided") - np.count_nonzero(differences, axis=0))
    return np.clip(p, np.maximum(np.minimum(fewest, 1), SMALLEST), 1)


def _at_most(bound: NDArray[np.int_], total: NDArray[np.int_], sizes: NDArray[np.int_]) -> Floats:
    """P(U <= bound): the inverse transform, its sum over 0..bound in closed form (Dirichlet).

    An odd number of frequencies keeps every cosine away from 0. Angles are multiples of pi/n, so
    they are reduced in whole numbers, which is exact.
    """
    n = int(total.max(initial=0)) // 2 * 2 + 1
    n += 2 * (n <= total.max(initial=0))
    j = np.arange(1, n // 2 + 1)
    k = np.arange(1, sizes.shape[1] + 1)

    def angle(multiple: NDArray[np.int_]) -> Floats:
        return np.asarray(np.pi / n * (multiple % (2 * n)))

    cosines = np.cos(angle(np.outer(k, j)))
    size = np.exp(sizes @ np.log(np.abs(cosines)))
    sign = 1 - 2 * ((sizes @ (cosines < 0).astype(np.int64)) % 2)
    middle = np.cos(angle(np.outer(total - bound, j)))
    kernel = np.sin(angle(np.outer(bound + 1, j))) / np.sin(angle(j))
    return np.asarray((bound + 1 + 2 * np.sum(size * sign * middle * kernel, axis=1)) / n)


# --- Attention between words --------------------------------------------------------------------


def word_maps(maps: Tensor, queries: Words, keys: Words, *, rows: Rows = "mean") -> Tensor:
    """Attention between words, ``[batch, head, query word, key word]``; special tokens left out.

    Columns are summed over a word's pieces. Rows are averaged; ``first`` takes the row of the
    first piece, ``max`` the largest weight of any piece, scaled so that a row with all tokens
    sums to 1 (both from Clark et al.'s program). A word that is not there has zeros.

    >>> pieces = torch.tensor([[[True, False, False], [False, True, True]]])
    >>> words = Words(pieces, pieces.any(-1), [None])
    >>> maps = torch.tensor([[[[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]]])
    >>> word_maps(maps, words, words).squeeze().tolist()
    [[0.5, 0.5], [0.2..., 0.8...]]
    """
    if rows not in ("mean", "first", "max"):
        raise UsageError(f"rows is '{rows}'; choose mean, first or max.")
    columns = _columns(maps, queries, keys)
    if rows == "mean":
        batch, heads, tokens, count = columns.shape
        pieces = queries.pieces.to(columns.dtype)
        shares = pieces / pieces.sum(-1, keepdim=True).clamp(min=1)
        side_by_side = columns.transpose(1, 2).reshape(batch, tokens, heads * count)
        means = torch.bmm(shares, side_by_side)
        return means.view(batch, shares.shape[1], heads, count).transpose(1, 2)
    if rows == "first":
        return _piece_rows(columns, queries.pieces, 0)
    found = _largest(columns, queries.pieces)
    # Weights on tokens that belong to no word.
    outside = queries.pieces.any(1)[:, None, :, None] & ~keys.pieces.any(1)[:, None, None]
    rest = _largest(maps.masked_fill(~outside, 0), queries.pieces)
    total = found.sum(-1, keepdim=True) + rest.sum(-1, keepdim=True)
    return found / total.masked_fill(total == 0, 1)


#: Cells of words by tokens from which words are added up token by token.
_LARGE = 2**20


def _columns(maps: Tensor, queries: Words, keys: Words) -> Tensor:
    """Weights summed over each key word's pieces, ``[batch, head, query token, key word]``."""
    batch, heads, tokens, others = maps.shape
    words = keys.pieces.shape[1]
    if words * others > _LARGE:  # a product would spend its time on words that a token is not of
        found = maps.new_zeros(batch, heads, tokens, words)
        for text, (word, token) in enumerate(keys.pairs):
            found[text].index_add_(-1, word, maps[text][..., token])
    else:
        # One product for all heads of a text: thrice as fast as a product for each head.
        pieces = keys.pieces.to(maps.dtype).transpose(1, 2)
        found = torch.bmm(maps.reshape(batch, heads * tokens, others), pieces)
        found = found.view(batch, heads, tokens, words)
    # Rows of padding hold no meaning, not even a number.
    return found.masked_fill(~queries.pieces.any(1)[:, None, :, None], 0)


def _piece_rows(columns: Tensor, pieces: Tensor, number: int) -> Tensor:
    """The row of each word's piece of this number; zeros where it has fewer."""
    wanted = pieces & (pieces.cumsum(-1) == number + 1)
    place = wanted.int().argmax(-1)[:, None, :, None]
    shape = (columns.shape[0], columns.shape[1], pieces.shape[1], columns.shape[-1])
    rows = torch.gather(columns, 2, place.expand(shape))
    return rows.masked_fill(~wanted.any(-1)[:, None, :, None], 0)


def _largest(columns: Tensor, pieces: Tensor) -> Tensor:
    found = _piece_rows(columns, pieces, 0)
    for number in range(1, int(pieces.sum(-1).max()) if pieces.numel() else 0):
        found = torch.maximum(found, _piece_rows(columns, pieces, number))
    return found
