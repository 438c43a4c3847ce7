"""The shared body of tallies that ask heads to choose a word, and count right answers by text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.columns import Column
from headcount.heads import STACKS, Head
from headcount.models.site import Site
from headcount.tallies.choice_frame import ChoiceTest, choice_frame
from headcount.tallies.closed_up import closed_up
from headcount.tallies.relation_counts import (
    ALL,
    Ground,
    RelationCounts,
    Seen,
    Small,
    Unit,
    counts_of,
)
from headcount.tallies.tally import Reading
from headcount.text.sentence import Sentence
from headcount.text.words import Rows, Words, word_maps
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["DIRECTION", "Asked", "ChoiceTally", "counted", "units_of"]

#: The one direction there is; the counts of relations have several.
DIRECTION = "chosen"

_CROSS = "queries and keys are different texts"


class Asked(Protocol):
    """The questions of a batch: cells to count in, and how a head's map answers."""

    @property
    def ground(self) -> Ground:
        """Texts, kinds of questions, and what the baselines get; no cell where nothing is asked."""

    def hits(self, maps: Tensor) -> Small:
        """Right answers by cell and head, from maps between the words that are there."""


@dataclass
class ChoiceTally(ABC):
    """Hits of every head, and of rules that know no model, counted text by text."""

    #: How rows of a word's pieces become one.
    rows: Rows = field(default="mean", kw_only=True)
    test: ChoiceTest = field(default_factory=ChoiceTest, kw_only=True)

    needs = Needs(maps=True)
    column: ClassVar[Column]
    kinds: ClassVar[tuple[str, ...]]
    baselines: ClassVar[tuple[str, ...]]
    #: Why there may be no value.
    none: ClassVar[str]

    def __post_init__(self) -> None:
        """Start with nothing seen."""
        self._seen: dict[Site, list[Seen]] = defaultdict(list)
        self._broken: set[Site] = set()
        self._silent: dict[Site, str] = {}
        self._last: tuple[object, dict[tuple[str, bool], Asked]] = (None, {})

    @property
    def columns(self) -> tuple[Column, ...]:
        """The accuracy over all questions."""
        return (self.column,)

    @abstractmethod
    def ask(self, words: Words, units: Sequence[Unit], causal: bool) -> Asked:
        """The questions of a batch, words counted without those that are not there."""

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; silent where nothing can be asked."""
        words = sighting.queries.words
        if words is None or sighting.maps is None or sighting.site.stack == "cross":
            self._silent[sighting.site] = _CROSS if sighting.site.stack == "cross" else self.none
            return
        asked = self._asked(sighting, words)
        if not asked.ground.labels:
            self._silent[sighting.site] = self.none
            return
        here = closed_up(words)
        maps = word_maps(sighting.maps, here, here, rows=self.rows)
        if bool(torch.isnan(maps).any()):
            self._broken.add(sighting.site)
        self._seen[sighting.site].append(Seen(asked.ground, {DIRECTION: asked.hits(maps)}))

    def merge(self, other: Self) -> None:
        """Take in the counts of another part of the corpus."""
        for site, seen in other._seen.items():
            self._seen[site].extend(seen)
        self._broken |= other._broken
        self._silent = other._silent | self._silent

    def compute(self) -> list[Reading]:
        """Accuracy over all questions, with an interval over texts."""
        told = [self._read(site, seen) for site, seen in self._seen.items()]
        return told + [
            Reading.missing(self.column.name, site, why)
            for site, why in self._silent.items()
            if site not in self._seen
        ]

    def details(self) -> dict[str, pd.DataFrame]:
        """A row for each head, kind of question, baseline and split, under the column's name."""
        return {self.column.name: self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """The finer table; see `choice_frame`."""
        return choice_frame(
            self.counts(),
            self.test,
            direction=DIRECTION,
            kinds=(ALL, *self.kinds),
            baselines=self.baselines,
        )

    def counts(self) -> list[RelationCounts]:
        """The counts by text, one for each stack; `offsets` are the baselines, in their order."""
        by_stack: dict[str, dict[tuple[Head, ...], list[Seen]]] = defaultdict(dict)
        for site in sorted(self._seen, key=lambda s: (STACKS.index(s.stack), s.layer, s.call)):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, range(len(self.baselines))) for seen in by_stack.values()]

    def _read(self, site: Site, seen: list[Seen]) -> Reading:
        if site in self._broken:
            return Reading.broken(self.column.name, site)
        found = counts_of({tuple(site.names): seen}, ()).of(ALL, DIRECTION)
        n, x = found.arcs, found.hits
        sums = (x.sum(0), n.sum(), (x**2).sum(0), n @ x, n @ n, len(n))
        return Reading(self.column.name, site, *stats.ratio_interval(*sums, bounds=(0, 1)))

    def _asked(self, sighting: Sighting, words: Words) -> Asked:
        """The questions of a batch, made for the first site of a stack and kept for the others."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        key = (sighting.site.stack, sighting.site.causal)
        if key not in made:
            made[key] = self.ask(words, units_of(words, sighting.batch.index), key[1])
        return made[key]


def units_of(words: Words, index: Sequence[int]) -> list[Unit]:
    """What is drawn together in a resample: the document of a passage, else the text."""
    return [
        _unit(sentence, number) for sentence, number in zip(words.sentences, index, strict=True)
    ]


def _unit(sentence: Sentence | None, index: int) -> Unit:
    if sentence is None:
        return Unit.of(index, "")
    document = sentence.comments.get("doc")
    return Unit.of(index, sentence.text) if document is None else Unit.of(0, f"doc {document}")


def counted(cell: Tensor, hits: Tensor, cells: int) -> Small:
    """Hits ``[question, ...]`` added up in their cells, ``[cell, ...]``."""
    sums = torch.zeros(cells, *hits.shape[1:], dtype=torch.int32, device=hits.device)
    return sums.index_add_(0, cell, hits.int()).to(torch.int16).cpu().numpy()
