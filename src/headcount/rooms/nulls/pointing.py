"""Arcs kept whole: which word every head points to, so that any null is judged on the same arcs.

The survey counts hits of heads by sentence. A null that reads the words needs the arcs themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headcount.models import Site
from headcount.records import STACKS, Head
from headcount.rooms.relations import ROOT, Arcs, BatchArcs, Relations, arcs_of
from headcount.rooms.words import Unit, in_selection, universal
from headcount.surveys import BatchCache
from headcount.text import Words

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


class BatchWords(NamedTuple):
    """The words of one batch with their arcs; windows of a text are rows of their own."""

    units: tuple[Unit, ...]
    forms: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    #: ``[row, word]``.
    there: Flags
    arcs: Arcs


@dataclass
class PointingRelations(Relations):
    """`Relations` that also keeps the word each word points to, and the one that points to it."""

    kept: ClassVar[tuple[type, ...]] = (*Relations.kept, Arcs, BatchWords)
    _kept: dict[Site, list[tuple[BatchWords, NDArray[np.int16]]]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False, compare=False
    )
    _words: BatchCache[BatchWords] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    def merge(self, other: Self) -> None:
        """Take in the arcs of another part of the corpus."""
        super().merge(other)
        for site, kept in other._kept.items():
            self._kept[site].extend(kept)

    def _keep(
        self, site: Site, arcs: BatchArcs, words: Words, found: tuple[Tensor, Tensor]
    ) -> None:
        def made() -> BatchWords:
            sentences = [sentence.words or () if sentence else () for sentence in words.sentences]
            return BatchWords(
                arcs.cells.units,
                tuple(tuple(word.form for word in sentence) for sentence in sentences),
                tuple(
                    tuple(word.upos or _UPOS.get((word.xpos or "")[:2], "") for word in sentence)
                    for sentence in sentences
                ),
                words.there.cpu().numpy(),
                arcs_of(words, self._marks),
            )

        pointed = np.stack([part.cpu().numpy() for part in found]).astype(np.int16)
        self._kept[site].append((self._words.get(words, "words", made), pointed))

    def pointings(self) -> list[Pointing]:
        """What was kept, a stack each; nothing of a convention whose arcs are not words alone."""
        if self.convention != "headcount" or self._marks:
            return []
        by_stack: dict[str, list[Site]] = defaultdict(list)
        for site in sorted(self._kept, key=lambda s: (STACKS.index(s.stack), s.layer, s.call)):
            by_stack[site.stack].append(site)
        return [
            Pointing(
                stack,
                tuple(head for site in sites for head in site.names),
                sites[0].causal,
                [one for one, _ in self._kept[sites[0]]],
                [[pointed for _, pointed in self._kept[site]] for site in sites],
            )
            for stack, sites in by_stack.items()
            if len({len(self._kept[site]) for site in sites}) == 1
        ]


#: Penn Treebank tags, by their first two letters, as universal parts of speech.
_UPOS = {
    "NN": "NOUN", "VB": "VERB", "MD": "AUX", "JJ": "ADJ", "RB": "ADV", "DT": "DET", "IN": "ADP",
    "CC": "CCONJ", "CD": "NUM", "PR": "PRON", "TO": "PART", "RP": "ADP", "WP": "PRON",
    "WD": "PRON", "WR": "ADV", "PO": "PART", "EX": "PRON", "UH": "INTJ", "PD": "DET",
    ".": "PUNCT", ",": "PUNCT", ":": "PUNCT", "``": "PUNCT", "''": "PUNCT", "-L": "PUNCT",
    "-R": "PUNCT", "HY": "PUNCT", "$": "SYM", "#": "SYM",
}  # fmt: skip


class AskedArcs(NamedTuple):
    """The arcs of one relation and direction; places count words of the whole corpus."""

    query: Places
    target: Places
    #: The sentence of each arc, and whether that one is of the half that judges.
    unit: Places
    judged: Flags


@dataclass
class Pointing:
    """The words of a corpus one after another, and where each head of a stack points from them."""

    stack: str
    heads: tuple[Head, ...]
    causal: bool
    batches: Sequence[BatchWords]
    #: By site and batch, ``[2, row, head, word]``: from the word, and to it.
    sites: Sequence[Sequence[NDArray[np.int16]]]
    #: The seed of the split.
    seed: int = 0

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """Batch and row of every text, in order."""
        return [(b, r) for b, batch in enumerate(self.batches) for r in range(len(batch.units))]

    @cached_property
    def sizes(self) -> Places:
        """How many words each text has."""
        return np.array([len(self.batches[b].forms[r]) for b, r in self.rows], dtype=np.int64)

    @cached_property
    def starts(self) -> Places:
        """The first word of each text."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def text(self) -> Places:
        """The text of each word."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def forms(self) -> NDArray[np.str_]:
        """Every word in lower case."""
        return np.array([w.lower() for b, r in self.rows for w in self.batches[b].forms[r]])

    @cached_property
    def capital(self) -> Flags:
        """Which words begin with a capital."""
        return np.array([w[:1].isupper() for b, r in self.rows for w in self.batches[b].forms[r]])

    @cached_property
    def tags(self) -> NDArray[np.str_]:
        """The part of speech of every word; empty where it is not known."""
        return np.array([tag for b, r in self.rows for tag in self.batches[b].tags[r]])

    @cached_property
    def there(self) -> Flags:
        """Which words the model has whole."""
        parts = [self.batches[b].there[r, :n] for (b, r), n in self._sized]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    @property
    def _sized(self) -> list[tuple[tuple[int, int], int]]:
        return list(zip(self.rows, self.sizes.tolist(), strict=True))

    @cached_property
    def judging(self) -> Flags:
        """Whether each text is of the half that judges."""
        return ~in_selection([self.batches[b].units[r] for b, r in self.rows], self.seed)

    @cached_property
    def units(self) -> Places:
        """The number of each text's sentence; windows of one sentence share it."""
        numbers: dict[Unit, int] = {}
        return np.array(
            [numbers.setdefault(self.batches[b].units[r], len(numbers)) for b, r in self.rows]
        )

    @cached_property
    def pointed(self) -> NDArray[np.int32]:
        """``[2, word, head]``: the word that each word points to, and the one pointing to it.

        Places are those of the corpus; pointers stay within a text.
        """
        layers = []
        for site in self.sites:
            parts = [
                site[b][:, r, :, :n].transpose(0, 2, 1).astype(np.int32) + start
                for ((b, r), n), start in zip(self._sized, self.starts.tolist(), strict=True)
            ]
            layers.append(np.concatenate(parts, axis=1))
        return np.concatenate(layers, axis=2)

    @cached_property
    def _arcs(self) -> tuple[Places, Places, NDArray[np.str_]]:
        """Dependent, head and relation of all arcs but the root's."""
        found, first = [], 0
        for batch in self.batches:
            arcs, starts = batch.arcs, self.starts[first : first + len(batch.units)]
            inner = arcs.head != ROOT
            base = starts[arcs.row[inner]]
            names = np.array([universal(one) for one in arcs.labels], dtype=np.str_)
            found.append((base + arcs.dependent[inner], base + arcs.head[inner], names[inner]))
            first += len(batch.units)
        dependents, heads, labels = zip(*found, strict=True)
        return np.concatenate(dependents), np.concatenate(heads), np.concatenate(labels)

    def relations(self, support: int, without: frozenset[str]) -> list[str]:
        """Relations with enough arcs, the most frequent first."""
        names, counts = np.unique(self._arcs[2], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [str(names[i]) for i in order if counts[i] >= support and names[i] not in without]

    def asked(self, relation: str, direction: str) -> AskedArcs:
        """The arcs of a relation that a direction asks about (see `arc_targets`)."""
        dependent, head, names = self._arcs
        own = names == relation
        child, parent = dependent[own], head[own]
        query, target = (parent, child) if direction == "head->dep" else (child, parent)
        if self.causal:
            seen = target > query if direction == "head<-dep" else target < query
            query, target = query[seen], target[seen]
        text = self.text[query]
        return AskedArcs(query, target, self.units[text], self.judging[text])

    def hits(self, asked: AskedArcs, direction: str) -> Flags:
        """Whether each head is right, ``[arc, head]``."""
        pointed: Flags = (
            self.pointed[int(direction == "head<-dep"), asked.query] == asked.target[:, None]
        )
        return pointed

    def shuffled_hits(self, asked: AskedArcs, direction: str, seed: int = 0) -> tuple[Flags, Flags]:
        """The same with the maps of another text of as many words; and which arcs have one."""
        other = _partners(self.sizes, seed)
        text = self.text[asked.query]
        moved = self.starts[other[text]] - self.starts[text]
        pointed = self.pointed[int(direction == "head<-dep"), asked.query + moved]
        return pointed == (asked.target + moved)[:, None], other[text] != text


def _partners(sizes: Places, seed: int) -> Places:
    """Another text of as many words for each text; itself where there is none.

    >>> _partners(np.array([2, 3, 2, 5]), 0).tolist()
    [2, 1, 0, 3]
    """
    partner = np.arange(len(sizes))
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    for size in np.unique(sizes):
        own = drawn[sizes[drawn] == size]
        partner[own] = np.roll(own, 1)
    return partner
