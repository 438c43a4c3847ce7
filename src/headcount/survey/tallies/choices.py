"""The shared body of tallies that ask heads to choose a word, and count right answers by text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import StatsError
from headcount.models import Site
from headcount.records import STACKS, Column, Head
from headcount.stats import sign_flip_counts
from headcount.survey.tallies.counts import (
    ALL,
    SPLITS,
    BatchCells,
    Counts,
    RelationCounts,
    SiteHits,
    Small,
    Unit,
    counts_of,
    in_selection,
)
from headcount.survey.tally import Reading, compact_words
from headcount.text import Rows, Sentence, Words, word_maps
from headcount.wiring import Needs, Sighting

# --- Choices of heads against rules that know no model ------------------------------------------
# As for relations, heads are chosen on one half of the texts (`select`) and judged on the other
# (`report`); the naive figure over both stands beside them (`all`). A text is a whole document
# where
# passages name theirs: mentions of one document are right or wrong together.

Floats = NDArray[np.float64]
FrameRows = NDArray[np.bool_]


@dataclass(frozen=True)
class ChoiceTest:
    """How accuracies are judged.

    The null hypothesis: on `report`, the head is right no more often than the baseline, paired by
    text (exact sign flips). Holm corrects over all heads and kinds of a baseline, with
    Benjamini-Hochberg beside it.
    """

    #: Kinds with fewer questions are shown and not tested.
    support: int = 30
    level: float = 0.05
    draws: int = 2000
    confidence: float = 0.95
    #: Of the split and of the draws.
    seed: int = 0


def choice_frame(
    counts: Sequence[RelationCounts],
    test: ChoiceTest,
    *,
    direction: str,
    kinds: Sequence[str],
    baselines: Sequence[str],
) -> pd.DataFrame:
    """A row for each head, kind, baseline and split that has questions."""
    blocks = [
        {**_heads(one), "kind": kind, **figures}
        for one in counts
        for kind in kinds
        for figures in _splits(one.of(kind, direction), one.units, baselines, test)
    ]
    frame = pd.concat([pd.DataFrame(block) for block in blocks], ignore_index=True)
    return _corrected(frame, test)


def _heads(counts: RelationCounts) -> dict[str, Any]:
    stack, layer, head = zip(*counts.heads, strict=True)
    return {"stack": stack, "layer": layer, "head": head}


def _splits(
    found: Counts, units: Sequence[Unit], baselines: Sequence[str], test: ChoiceTest
) -> Iterator[dict[str, Any]]:
    """The figures of one kind on each split, once for each baseline."""
    chosen = in_selection(units, test.seed)[found.unit]
    best = found.hits[chosen].sum(axis=0).argmax() if chosen.any() else None
    every = np.ones_like(chosen)
    for split, rows in zip(SPLITS, (chosen, ~chosen, every), strict=True):
        if rows.any():
            selected = np.arange(found.hits.shape[1]) == best if split != "all" else False
            common = {"split": split, **_figures(found, rows, test), "selected": selected}
            tested = split == "report" and int(found.arcs.sum()) >= test.support
            for place, name in enumerate(baselines):
                yield common | _against(found, rows, place, name, tested)


def _figures(found: Counts, rows: FrameRows, test: ChoiceTest) -> dict[str, Any]:
    n, hits = found.arcs[rows], found.hits[rows]
    low = high = np.full(hits.shape[1], np.nan)
    if len(n) >= 2:
        pairs = np.stack([hits, np.broadcast_to(n[:, None], hits.shape)], axis=-1)
        _, low, high = stats.bootstrap_interval(
            pairs, draws=test.draws, confidence=test.confidence, seed=test.seed
        )
    accuracy = hits.sum(axis=0) / n.sum()
    about = {"n": int(n.sum()), "texts": int(rows.sum())}
    return about | {"accuracy": accuracy, "low": low, "high": high}


def _against(found: Counts, rows: FrameRows, place: int, name: str, tested: bool) -> dict[str, Any]:
    """One baseline's accuracy, and each head's p against it."""
    n, theirs = found.arcs[rows], found.offsets[rows, place]
    p: Floats | float = np.nan
    if tested and rows.sum() >= 2:
        p = sign_flip_counts(found.hits[rows] - theirs[:, None], alternative="greater")
    return {"against": name, "baseline": theirs.sum() / n.sum(), "p": p}


def _corrected(frame: pd.DataFrame, test: ChoiceTest) -> pd.DataFrame:
    """Correct all tests against one baseline together; drop those that cannot answer."""
    frame = frame.assign(p_adjusted=np.nan, p_bh=np.nan, note="")
    for _, group in frame[frame["p"].notna()].groupby("against", sort=False):
        for texts, rows in group.groupby("texts"):
            why = _why_none(int(str(texts)), len(group), test.level)
            if why:
                frame.loc[rows.index, ["p", "note"]] = np.nan, why
        p = frame.loc[group.index, "p"].to_numpy(dtype=float)
        frame.loc[group.index, "p_adjusted"] = stats.holm(p)
        frame.loc[group.index, "p_bh"] = stats.benjamini_hochberg(p)
    return frame


def _why_none(texts: int, tests: int, level: float) -> str:
    """Why so few texts cannot answer so many tests; nothing where they can."""
    try:
        stats.check_resolution(tests=tests, sentences=texts, level=level, alternative="greater")
    except StatsError as error:
        return str(error)
    return ""


# --- The shared body of tallies that ask heads to choose a word ---------------------------------

#: The one direction there is; the counts of relations have several.
DIRECTION = "chosen"

_CROSS = "queries and keys are different texts"


class BatchChoices(Protocol):
    """The questions of a batch: cells to count in, and how a head's map answers."""

    @property
    def ground(self) -> BatchCells:
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
        self._seen: dict[Site, list[SiteHits]] = defaultdict(list)
        self._broken: set[Site] = set()
        self._silent: dict[Site, str] = {}
        self._last: tuple[object, dict[tuple[str, bool], BatchChoices]] = (None, {})

    @property
    def columns(self) -> tuple[Column, ...]:
        """The accuracy over all questions."""
        return (self.column,)

    @abstractmethod
    def ask(self, words: Words, units: Sequence[Unit], causal: bool) -> BatchChoices:
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
        here = compact_words(words)
        maps = word_maps(sighting.maps, here, here, rows=self.rows)
        if bool(torch.isnan(maps).any()):
            self._broken.add(sighting.site)
        self._seen[sighting.site].append(SiteHits(asked.ground, {DIRECTION: asked.hits(maps)}))

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
        by_stack: dict[str, dict[tuple[Head, ...], list[SiteHits]]] = defaultdict(dict)
        for site in sorted(self._seen, key=lambda s: (STACKS.index(s.stack), s.layer, s.call)):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, range(len(self.baselines))) for seen in by_stack.values()]

    def _read(self, site: Site, seen: list[SiteHits]) -> Reading:
        if site in self._broken:
            return Reading.broken(self.column.name, site)
        found = counts_of({tuple(site.names): seen}, ()).of(ALL, DIRECTION)
        n, x = found.arcs, found.hits
        sums = (x.sum(0), n.sum(), (x**2).sum(0), n @ x, n @ n, len(n))
        return Reading(self.column.name, site, *stats.ratio_interval(*sums, bounds=(0, 1)))

    def _asked(self, sighting: Sighting, words: Words) -> BatchChoices:
        """The questions of a batch, made for the first site of a stack and kept for the others."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        key = (sighting.site.stack, sighting.site.causal)
        if key not in made:
            made[key] = self.ask(words, resample_units(words, sighting.batch.index), key[1])
        return made[key]


def resample_units(words: Words, index: Sequence[int]) -> list[Unit]:
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
