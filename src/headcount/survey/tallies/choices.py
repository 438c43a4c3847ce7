"""Tallies of heads that choose one word among several, against rules that know no model.

As for relations, heads are chosen on one half of the texts (`select`) and judged on the other
(`report`); the naive figure over both stands next to them (`all`). A text is a whole document where
passages name theirs: mentions of one document are right or wrong together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import stats
from headcount.models import Site
from headcount.records import Column
from headcount.survey.tallies.counts import (
    ALL,
    SPLITS,
    BatchCells,
    ChoiceTest,
    Counts,
    HitsTally,
    RelationCounts,
    SiteHits,
    Small,
    Unit,
    correct_tests,
    counts_of,
    hits_by_cell,
    in_selection,
    interval_over_texts,
    number_cells,
    p_of_counts,
)
from headcount.survey.tally import BatchCache, Reading, compact_words
from headcount.text import Rows, Words, word_maps
from headcount.wiring import Sighting

#: The one direction there is; the counts of relations have several.
DIRECTION = "chosen"

_CROSS = "queries and keys are different texts"


# --- The choices of a batch ---------------------------------------------------------------------


class Choice(NamedTuple):
    """One word that chooses; places are words of its row, those that are not there left out."""

    row: int
    kind: str
    query: int
    right: list[int]
    #: What else is needed to tell: the candidates, or the wrong words.
    others: list[int]
    #: Whether each baseline is right.
    baselines: list[bool]


@dataclass(frozen=True)
class BatchChoices(ABC):
    """The choices of a batch, and the cells they are counted in."""

    row: Tensor
    query: Tensor
    #: Bool ``[choice, word]``.
    right: Tensor
    others: Tensor
    #: The cell (text and kind) of each choice.
    cell: Tensor
    cells: BatchCells

    @classmethod
    def of(
        cls, choices: Sequence[Choice], words: Words, units: Sequence[Unit], baselines: int
    ) -> Self:
        """Lay out choices as tensors on the device of the words."""
        device, width = words.there.device, int(words.there.sum(1).max()) if len(words) else 0
        cells, cell = number_cells([(choice.row, choice.kind) for choice in choices])
        rules = torch.tensor([choice.baselines for choice in choices], dtype=torch.bool)
        masks = [torch.zeros(len(choices), width, dtype=torch.bool) for _ in range(2)]
        for number, choice in enumerate(choices):
            masks[0][number, choice.right] = True
            masks[1][number, choice.others] = True
        places = ([choice.row for choice in choices], [choice.query for choice in choices])
        row, query = (torch.tensor(part, dtype=torch.long, device=device) for part in places)
        counted = BatchCells(
            units=tuple(units),
            unit=np.array([row for row, _ in cells], dtype=np.int16),
            labels=tuple(kind for _, kind in cells),
            arcs={DIRECTION: hits_by_cell(cell, torch.ones(len(choices)), len(cells))},
            offsets={
                DIRECTION: hits_by_cell(cell, rules.reshape(len(choices), baselines), len(cells))
            },
        )
        return cls(row, query, *(mask.to(device) for mask in masks), cell.to(device), counted)

    def hits(self, maps: Tensor) -> Small:
        """Right choices by cell and head, from maps between the words that are there."""
        right = self.is_right(maps[self.row, :, self.query])
        return hits_by_cell(self.cell, right, len(self.cells.labels))

    @abstractmethod
    def is_right(self, weights: Tensor) -> Tensor:
        """Whether each head is right, bool ``[choice, head]``, given ``[choice, head, word]``."""


# --- Counts become a frame ----------------------------------------------------------------------


def choice_frame(
    counts: Sequence[RelationCounts],
    test: ChoiceTest,
    kinds: Sequence[str],
    baselines: Sequence[str],
) -> pd.DataFrame:
    """A row for each head, kind, baseline and split that has choices."""
    blocks = []
    for one in counts:
        heads = dict(zip(("stack", "layer", "head"), zip(*one.heads, strict=True), strict=True))
        for kind in kinds:
            found = one.of(kind, DIRECTION)
            for figures in _figures(found, one.units, baselines, test):
                blocks.append(pd.DataFrame({**heads, "kind": kind, **figures}))
    frame = pd.concat(blocks, ignore_index=True).assign(p_adjusted=np.nan, p_bh=np.nan, note="")
    for _, group in frame[frame["p"].notna()].groupby("against", sort=False):
        correct_tests(frame, group.index, "texts", test.level)
    return frame


def _figures(
    found: Counts, units: Sequence[Unit], baselines: Sequence[str], test: ChoiceTest
) -> Iterator[dict[str, Any]]:
    """The figures of one kind on each split, once for each baseline."""
    chosen = in_selection(units, test.seed)[found.unit]
    best = found.hits[chosen].sum(axis=0).argmax() if chosen.any() else None
    for split, rows in zip(SPLITS, (chosen, ~chosen, np.ones_like(chosen)), strict=True):
        if not rows.any():
            continue
        n, hits = found.arcs[rows], found.hits[rows]
        low, high = interval_over_texts(n, hits, test)
        selected = np.arange(hits.shape[1]) == best if split != "all" else False
        tested = split == "report" and int(found.arcs.sum()) >= test.support
        for place, name in enumerate(baselines):
            theirs = found.offsets[rows, place]
            yield {
                "split": split,
                "n": int(n.sum()),
                "texts": int(rows.sum()),
                "accuracy": hits.sum(axis=0) / n.sum(),
                "low": low,
                "high": high,
                "selected": selected,
                "against": name,
                "baseline": theirs.sum() / n.sum(),
                "p": p_of_counts(hits, theirs) if tested else np.nan,
            }


# --- The shared body of the tallies -------------------------------------------------------------


@dataclass
class ChoiceTally(HitsTally, ABC):
    """Hits of every head, and of rules that know no model, counted text by text."""

    #: How rows of a word's pieces become one.
    rows: Rows = field(default="mean", kw_only=True)
    test: ChoiceTest = field(default_factory=ChoiceTest, kw_only=True)
    _choices: BatchCache[BatchChoices] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    column: ClassVar[Column]
    kinds: ClassVar[tuple[str, ...]]
    baselines: ClassVar[tuple[str, ...]]
    #: Why there may be no value.
    none: ClassVar[str]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The accuracy over all choices."""
        return (self.column,)

    @property
    def tried(self) -> tuple[int, ...]:
        """The baselines by number."""
        return tuple(range(len(self.baselines)))

    @abstractmethod
    def choices(self, words: Words, units: Sequence[Unit], causal: bool) -> BatchChoices:
        """The choices of a batch, words counted without those that are not there."""

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; nothing where there is no choice."""
        site, words = sighting.site, sighting.queries.words
        if words is None or sighting.maps is None or site.stack == "cross":
            self._skipped[site] = _CROSS if site.stack == "cross" else self.none
            return
        found = self._choices.get(
            sighting.batch,
            (site.stack, site.causal),
            lambda: self.choices(words, resample_units(words, sighting.batch.index), site.causal),
        )
        if not found.cells.labels:
            self._skipped[site] = self.none
            return
        here = compact_words(words)
        maps = word_maps(sighting.maps, here, here, rows=self.rows)
        if bool(torch.isnan(maps).any()):
            self._broken.add(site)
        self._seen[site].append(SiteHits(found.cells, {DIRECTION: found.hits(maps)}))

    def compute(self) -> list[Reading]:
        """Accuracy over all choices, with an interval over texts."""
        return [self._read(site, seen) for site, seen in self._seen.items()] + [
            Reading.missing(self.column.name, site, why)
            for site, why in self._skipped.items()
            if site not in self._seen
        ]

    def details(self) -> dict[str, pd.DataFrame]:
        """A row for each head, kind of choice, baseline and split, under the column's name."""
        return {self.column.name: self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """The finer table; see `choice_frame`."""
        return choice_frame(self.counts(), self.test, (ALL, *self.kinds), self.baselines)

    def _read(self, site: Site, seen: list[SiteHits]) -> Reading:
        if site in self._broken:
            return Reading.broken(self.column.name, site)
        found = counts_of({tuple(site.names): seen}, ()).of(ALL, DIRECTION)
        n, x = found.arcs, found.hits
        sums = (x.sum(0), n.sum(), (x**2).sum(0), n @ x, n @ n, len(n))
        return Reading(self.column.name, site, *stats.ratio_interval(*sums, bounds=(0, 1)))


def resample_units(words: Words, index: Sequence[int]) -> list[Unit]:
    """What is drawn together in a resample: the document of a passage, else the text."""
    units = []
    for sentence, number in zip(words.sentences, index, strict=True):
        document = None if sentence is None else sentence.comments.get("doc")
        text = "" if sentence is None else sentence.text
        units.append(Unit.of(number, text) if document is None else Unit.of(0, f"doc {document}"))
    return units
