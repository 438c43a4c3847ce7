"""Means over texts next to their baselines, and the weight along pairs of words.

Kovaleva et al., EMNLP 2019, sections 4.1 and 4.3, score a link between words by the largest
attention over its pairs of tokens. Pairs that lie close, or are many, score high by that alone; so
the same pairs are also moved along the text, to every other place where they fit, and averaged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.models import Site, SiteGroup, members_of
from headcount.records import STACKS, Column
from headcount.rooms.words.counts import SPLITS, Unit, in_selection
from headcount.stats import Floats
from headcount.surveys import Reading, Sums
from headcount.text import Sentence, Word

# --- Means over texts of a figure and of its baseline, paired, on two splits --------------------
# For figures that are no counts (weights, masses): every text gives one value for each head and
# item (a feature, a link), and one for the baseline where it has one. Half of the texts choose
# (`select`), half judge (`report`), as for relations.

Side = Literal["greater", "less"]


@dataclass(frozen=True)
class Compared:
    """One batch's values ``[batch, head, item]``, and which of them count.

    `there` says which texts have an item ``[batch, item]``; `known` where there is a baseline to
    compare with.
    """

    value: Tensor
    there: Tensor
    baseline: Tensor
    known: Tensor


class LayerSums(ABC):
    """Sums to which the layers of a batch are added as one, on their device.

    On a GPU a layer by itself would cost as many launches as all of them together.
    """

    def __init__(self) -> None:
        #: Layers that wait, by what they have in common.
        self._held: dict[Any, list[Any]] = {}
        self._sums = Sums()

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sums)

    @property
    def sums(self) -> Sums:
        """All that was added."""
        for key in [*self._held]:
            self._settle(key)
        return self._sums

    @abstractmethod
    def _settle(self, key: Any) -> None:
        """Add up the layers that wait under a key."""


class PairedMeans(LayerSums):
    """Sums by site and item, ``[head, split, sum]``; they merge by addition.

    Layers wait by stack and items, each with what it gave and the split.
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: set[str] = set()

    def add(self, site: Site, items: Sequence[str], found: Compared, chosen: Tensor) -> None:
        """Take in a batch; `chosen` are the texts of the split `select`, bool ``[batch]``.

        Layers whose `there`, `known` and `chosen` are the same tensors belong together.
        """
        key = site.stack, tuple(items)
        for waiting, layers in [*self._held.items()]:
            _, one, split = layers[-1]
            alike = one.there is found.there and one.known is found.known
            another_batch = waiting[0] == site.stack and split is not chosen
            if another_batch or (waiting == key and not alike):
                self._settle(waiting)
        self._held.setdefault(key, []).append((site, found, chosen))
        self._items.update(items)

    def merge(self, other: PairedMeans) -> None:
        """Add the sums of another part of the corpus."""
        self.sums.merge(other.sums)
        self._items |= other._items

    def _settle(self, key: Any) -> None:
        sites, layers, (chosen, *_) = zip(*self._held.pop(key), strict=True)
        found = layers[0]
        values, baselines = (
            torch.cat([getattr(one, name) for one in layers], dim=1)
            for name in ("value", "baseline")
        )
        # Texts, values, squares; of texts with a baseline: number, values and their squares,
        # baselines, differences and their squares.
        there, known = found.there[:, None], (found.known & found.there)[:, None]
        value = torch.where(there, values, 0.0).double()
        ours = torch.where(known, values, 0.0).double()
        theirs = torch.where(known, baselines, 0.0).double()
        away = ours - theirs
        ones, compared = (part.double().expand_as(value) for part in (there, known))
        parts = (ones, value, value**2, compared, ours, ours**2, theirs, away, away**2)
        split = torch.stack([chosen, ~chosen], dim=1).double()
        sums = torch.einsum("pbhq,bs->qhsp", torch.stack(parts), split)
        self._sums.add(one_group(sites), dict(zip(key[1], sums, strict=True)))

    def of(self, site: Site, item: str) -> Floats:
        """The sums of an item, ``[split, sum, head]``; nothing where a site has no such item."""
        if not self.sums.has(site, item):
            return np.zeros((2, 9, site.heads))
        return np.moveaxis(self.sums.of(site, item).numpy(), 0, 2)

    def items(self, site: Site) -> list[str]:
        """The items that some text of a site has, by name."""
        return [item for item in sorted(self._items) if self.of(site, item)[:, 0].any()]

    def broken(self, site: Site) -> bool:
        """Whether a site's attention was not a number somewhere."""
        return any(bool(np.isnan(self.of(site, item)).any()) for item in self._items)

    def mean(self, site: Site, item: str) -> stats.Interval:
        """The mean over all texts with its 95% interval, a value a head."""
        n, v, vv = self.of(site, item).sum(axis=0)[:3]
        return stats.mean_interval(v, vv, n)

    def frame(
        self,
        label: str,
        side: Side = "greater",
        support: int = 2,
        compared: Mapping[tuple[Site, str], Floats] | None = None,
    ) -> pd.DataFrame:
        """A row for each head, item and split; p of "not greater (less) than the baseline".

        Student's t over texts, on `report` alone, Holm over all heads and items together; items
        with fewer texts than `support` are shown and not tested. `compared` has other comparisons,
        ``[split, sum, head]``, where there are any.
        """
        sites = sorted(self, key=lambda site: (STACKS.index(site.stack), site.layer))
        parts = [
            self._site_frame(site, label, side, support, compared or {})
            for site in sites
            if self.items(site)
        ]
        frame = pd.concat(parts, ignore_index=True)
        p = frame["p"].to_numpy(dtype=float)
        return frame.assign(p_adjusted=stats.holm(p), p_bh=stats.benjamini_hochberg(p))

    def _site_frame(
        self,
        site: Site,
        label: str,
        side: Side,
        support: int,
        compared: Mapping[tuple[Site, str], Floats],
    ) -> pd.DataFrame:
        """All rows of a site at once: ``[item, split, head]`` one after another."""
        items = self.items(site)
        halves = np.stack([self.of(site, item) for item in items])
        for place, item in enumerate(items):
            if (site, item) in compared:
                halves[place, :, 3:] = compared[site, item]
        sums = np.concatenate([halves, halves.sum(axis=1, keepdims=True)], axis=1)
        figures = _figures(np.moveaxis(sums, 2, 0), side, support)
        shape = (len(items), len(SPLITS), site.heads)
        key = {
            "stack": np.full(shape, site.stack),
            "layer": np.full(shape, site.layer),
            "head": np.broadcast_to(site.indices, shape),
            label: np.broadcast_to(np.array(items, dtype=object)[:, None, None], shape),
            "split": np.broadcast_to(np.array(SPLITS, dtype=object)[:, None], shape),
        }
        frame = pd.DataFrame({name: part.ravel() for name, part in (key | figures).items()})
        return frame[frame["n"] > 0].astype({"n": "int64", "compared_n": "int64"})


def _figures(sums: Floats, side: Side, support: int) -> dict[str, Floats]:
    """The figures of sums ``[sum, item, split, head]``."""
    n, v, vv, m, ours, squares, theirs, d, dd = sums
    value, low, high = stats.mean_interval(v, vv, n)
    compared, compared_low, compared_high = stats.mean_interval(ours, squares, m)
    away, away_low, away_high = stats.mean_interval(d, dd, m)
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = np.where(m > 0, theirs / m, np.nan)
    sign = 1 if side == "greater" else -1
    tested = m >= max(support, 2)
    tested[:, [SPLITS.index("select"), SPLITS.index("all")]] = False
    p = np.where(tested, stats.ratio_test(sign * d, m, dd, sign * d, m, m), np.nan)
    return {
        "n": n, "value": value, "low": low, "high": high, "compared_n": m, "compared": compared,
        "compared_low": compared_low, "compared_high": compared_high, "baseline": baseline,
        "difference": away, "difference_low": away_low, "difference_high": away_high, "p": p,
    }  # fmt: skip


def chosen_texts(units: Sequence[Unit], device: torch.device, seed: int = 0) -> Tensor:
    """Which rows of a batch belong to `select`, bool ``[batch]``."""
    return torch.from_numpy(in_selection(units, seed)).to(device)


@dataclass
class MeansTally:
    """The shared body of tallies of paired means: they merge by addition, and say what is missing.

    Every item has a column, by `column_of`.
    """

    kept: ClassVar[tuple[type, ...]] = (PairedMeans,)
    means: PairedMeans = field(default_factory=PairedMeans, init=False, repr=False, compare=False)
    #: Sites that were not measured, and why.
    _skipped: dict[Site, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    none: ClassVar[str]

    def column_of(self) -> dict[str, Column]:
        """The column of each item, by the item's name."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column an item."""
        return tuple(self.column_of().values())

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.means.merge(other.means)
        self._skipped = other._skipped | self._skipped

    def compute(self) -> list[Reading]:
        """The mean over texts, a reading for each item."""
        columns = {item: column.name for item, column in self.column_of().items()}
        measured = [*self.means]
        return [
            self._read(site, item, name) for site in measured for item, name in columns.items()
        ] + [
            Reading.missing(name, site, why)
            for site, why in self._skipped.items()
            if site not in measured
            for name in columns.values()
        ]

    def _read(self, site: Site, item: str, column: str) -> Reading:
        if item not in self.means.items(site):
            return Reading.missing(column, site, self.none)
        if self.means.broken(site):
            return Reading.broken(column, site)
        return Reading(column, site, *self.means.mean(site, item))


def one_group(sites: Iterable[Site]) -> Site:
    """Sites, or groups of them, as one."""
    return SiteGroup.of([member for site in sites for member in members_of(site)])


# --- The largest weight along pairs of words ----------------------------------------------------

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class _Groups:
    """Pairs one after another, and the group whose largest each of them may be."""

    row: Tensor
    source: Tensor
    target: Tensor
    group: Tensor
    #: The cell (row and item, counted through) of each group.
    cell: Tensor

    @classmethod
    def of(cls, groups: Sequence[tuple[int, int, Pairs]], device: torch.device | str) -> _Groups:
        """Lay out groups of pairs, each with its row and its cell."""
        flat = [
            (row, source, target, number)
            for number, (row, _, pairs) in enumerate(groups)
            for source, target in pairs
        ]
        numbers = torch.tensor(flat, dtype=torch.long, device=device).reshape(-1, 4)
        row, source, target, group = numbers.unbind(1)
        cells = torch.tensor([cell for _, cell, _ in groups], dtype=torch.long, device=device)
        return cls(row, source, target, group, cells)

    def largest(self, some: slice, maps: Tensor, before: Tensor | None) -> Tensor:
        """The largest weight of each group, ``[group, head]``, in some rows and those before."""
        chosen: Any = slice(None)
        if before is not None or some.start or maps.shape[2] < maps.shape[3]:
            chosen = (self.source >= some.start) & (self.source < some.stop)
        source = self.source[chosen] - some.start
        weights = maps[self.row[chosen], :, source, self.target[chosen]]
        if before is None:
            before = weights.new_full((len(self.cell), maps.shape[1]), -torch.inf)
        groups = self.group[chosen, None].expand_as(weights)
        return before.scatter_reduce_(0, groups, weights, "amax")


@dataclass(frozen=True)
class WordPairs:
    """The pairs of a batch: `own` of each row and item, `moved` once for every move."""

    own: _Groups
    moved: _Groups
    rows: int
    items: int

    def compared(self, tiles: Iterable[tuple[slice, Tensor]]) -> Compared:
        """Each row's figures for each item, from maps ``[batch, head, place, place]`` by tiles."""
        (own, there), (moved, known) = self._counts
        groups, largest = (self.own, self.moved), list[Any]([None, None])
        for some, maps in tiles:
            pairs = zip(groups, largest, strict=True)
            largest = [own_groups.largest(some, maps, most) for own_groups, most in pairs]
        value, baseline = map(self._mean, largest, groups, (own, moved))
        return Compared(value, there, baseline, known)

    @cached_property
    def _counts(self) -> list[tuple[Tensor, Tensor]]:
        """How many groups each cell has, at least 1, and where there is one; the same for maps."""
        cells = self.rows * self.items
        counts = [torch.bincount(one.cell, minlength=cells) for one in (self.own, self.moved)]
        return [(n.clamp_min(1)[:, None], (n > 0).view(self.rows, self.items)) for n in counts]

    def _mean(self, values: Tensor, groups: _Groups, count: Tensor) -> Tensor:
        """The mean of each cell's groups, ``[batch, head, item]``."""
        sums = values.new_zeros(len(count), values.shape[1]).index_add_(0, groups.cell, values)
        return (sums / count).view(self.rows, self.items, -1).transpose(1, 2)


def word_pairs(
    pairs: Sequence[Sequence[Pairs]],
    bounds: Sequence[tuple[int, int]],
    device: torch.device | str = "cpu",
) -> WordPairs:
    """Lay out pairs ``[row][item]``; `bounds` are the first and last place of each text.

    >>> found = word_pairs([[[(0, 1)]]], [(0, 2)])
    >>> maps = torch.tensor([[[[0.0, 0.7, 0.3], [0.5, 0.1, 0.4], [0.2, 0.2, 0.6]]]])
    >>> compared = found.compared([(slice(0, 2), maps[:, :, :2]), (slice(2, 3), maps[:, :, 2:])])
    >>> compared.value.tolist(), compared.baseline.tolist()
    ([[[0.69...]]], [[[0.40...]]])
    """
    items = len(pairs[0]) if pairs else 0
    own = [
        (row, row * items + number, list(each))
        for row, lists in enumerate(pairs)
        for number, each in enumerate(lists)
        if each
    ]
    moved = [
        (row, cell, [(source + step, target + step) for source, target in each])
        for row, cell, each in own
        for step in _steps(each, *bounds[row])
    ]
    return WordPairs(_Groups.of(own, device), _Groups.of(moved, device), len(pairs), items)


def _steps(pairs: Pairs, first: int, last: int) -> list[int]:
    """How far the pairs can be moved together and stay inside the text."""
    places = [place for pair in pairs for place in pair]
    return [step for step in range(first - min(places), last - max(places) + 1) if step]


# --- Kinds of words -----------------------------------------------------------------------------

# Kovaleva et al., EMNLP 2019, section 4.3: nouns, verbs, pronouns, subjects, objects, negation;
# they tagged with spaCy. Labels of Universal Dependencies, Stanford and spaCy are all known here.


@dataclass(frozen=True)
class Feature:
    """Words with one of these tags, relations or forms; what is empty says nothing.

    A word's universal tag counts where it has one, else its own tag, by its first letters. A
    relation counts whole (`obl:agent`) and without its subtype (`nsubj` for `nsubj:pass`).

    >>> Feature("noun", upos=frozenset({"NOUN"}), xpos=("NN",)).has(Word("rain", xpos="NNS"))
    True
    """

    name: str
    upos: frozenset[str] = frozenset()
    xpos: tuple[str, ...] = ()
    relations: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()

    def has(self, word: Word) -> bool:
        """Whether a word is of this kind."""
        relation = word.deprel or ""
        return (
            self._tagged(word)
            or relation in self.relations
            or relation.partition(":")[0] in self.relations
            or word.form.lower() in self.forms
        )

    def places(self, sentence: Sentence) -> list[int]:
        """The words of this kind, counted from 0."""
        return [place for place, word in enumerate(sentence.words or ()) if self.has(word)]

    def _tagged(self, word: Word) -> bool:
        if word.upos is not None:
            return word.upos in self.upos
        return bool(self.xpos) and (word.xpos or "").startswith(self.xpos)


_NEGATING = """
    not n't n’t no never none nobody nothing nowhere neither nor cannot without hardly barely
    scarcely seldom
"""
#: Seventeen words, as many as the authors' list has; the list itself is ours.
NEGATIONS = frozenset(_NEGATING.split())

NOUN = Feature("noun", upos=frozenset({"NOUN", "PROPN"}), xpos=("NN",))
VERB = Feature("verb", upos=frozenset({"VERB"}), xpos=("VB",))
PRONOUN = Feature("pronoun", upos=frozenset({"PRON"}), xpos=("PRP",))
SUBJECT = Feature(
    "subject",
    relations=frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "agent", "obl:agent", "expl"}),
)
OBJECT = Feature("object", relations=frozenset({"obj", "dobj", "iobj", "dative", "attr", "oprd"}))
NEGATION = Feature("negation", forms=NEGATIONS)

FEATURES: tuple[Feature, ...] = (NOUN, VERB, PRONOUN, SUBJECT, OBJECT, NEGATION)
