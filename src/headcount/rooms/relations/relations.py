"""How well each head points along dependency arcs, by relation and direction.

Voita et al., ACL 2019, section 5.2, and Clark et al., BlackBoxNLP 2019, section 4.2 and Table 1.
An arc is counted in three directions; the numbers end as the frame `relations`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import plugins
from headcount.errors import InputError, UsageError, check_convention
from headcount.models import Site
from headcount.records import FRAMES, Column
from headcount.rooms.words import (
    ALL,
    BatchCells,
    HitsTally,
    HitsTest,
    RelationCounts,
    SiteHits,
    Small,
    Unit,
    best_offset,
    correct_tests,
    figure_frame,
    figures_by_split,
    hits_by_cell,
    in_selection,
    number_cells,
)
from headcount.surveys import BatchCache, Reading, TallyPlan
from headcount.text import Rows, Word, Words
from headcount.wiring import Sighting

# --- The dependency arcs of a batch -------------------------------------------------------------

#: The place of the root's head, which is no word.
ROOT = -1
_UNKNOWN = -2

#: Clark's relation and its name in Universal Dependencies.
_POSSESSIVE = ("poss", "nmod:poss")
#: The word after a possessor: in Clark et al.'s program, and as treebanks write it.
CLARKS_MARKS = frozenset({"'s", "s'"})
MARKS = CLARKS_MARKS | {"’s", "s’", "'", "’"}

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Arcs:
    """Arcs one after another; places are words of a sentence, counted from 0."""

    #: Row of the batch.
    row: Places
    dependent: Places
    #: Whose row counts: the dependent, or the 's behind a possessor.
    source: Places
    #: `ROOT` for the root.
    head: Places
    #: Number of words of the sentence.
    length: Places
    #: The relation, as the treebank writes it.
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


def arcs_of(words: Words, marks: frozenset[str] = MARKS) -> Arcs:
    """The arcs whose words are there; what is not annotated, or points outside, is no arc.

    `marks` are the forms behind a possessor that stand for it (Clark et al. 2019, section 4.2:
    heads attend from 's, not from the possessor); an empty set turns that rule off.
    """
    sentences = [sentence.words or () if sentence else () for sentence in words.sentences]
    flat = [word for sentence in sentences for word in sentence]
    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    row, length = np.repeat(np.arange(len(sizes)), sizes), np.repeat(sizes, sizes)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    head = np.array([_UNKNOWN if word.head is None else word.head - 1 for word in flat], np.int64)
    source = place + _marked(flat, place + 1 < length, marks)
    kept = (head >= ROOT) & (head < length) & (head != place)
    # The root has no head that could be missing: take the word itself.
    ends = np.stack([place, source, np.where(head == ROOT, place, head)])[:, kept]
    kept[kept] = words.there.cpu().numpy()[row[kept], ends].all(axis=0)
    labels = tuple(flat[number].deprel or "_" for number in np.flatnonzero(kept).tolist())
    return Arcs(row[kept], place[kept], source[kept], head[kept], length[kept], labels)


def _marked(
    flat: Sequence[Word], followed: NDArray[np.bool_], marks: frozenset[str]
) -> NDArray[np.bool_]:
    """Which words are possessors with a mark behind them; the last of a sentence never is."""
    return np.array(
        [
            word.deprel in _POSSESSIVE and bool(followed[number]) and flat[number + 1].form in marks
            for number, word in enumerate(flat)
        ],
        dtype=bool,
    )


# --- Which word a head should point to ----------------------------------------------------------
# Three directions, for a head and a dependency arc:
#
# - ``dep->head``: does the row of the dependent point to its head? (Clark; Voita)
# - ``head->dep``: does the row of the head word point to the dependent? (Voita et al. 2019, section
#   5.2: the verb's row must find the subject; a verb has one row and may have many dependents)
# - ``head<-dep``: is the head the word that attends most to the dependent? (Clark et al. 2019,
#   section 4.2: the column of the dependent, so every word gets one head)

DIRECTIONS = ("dep->head", "head->dep", "head<-dep")

# No word and no offset is ever here.
_NOWHERE = -(2**40)


@dataclass(frozen=True)
class ArcTargets:
    """One row an arc: the word whose row (or column) is read, and the word it should point to."""

    #: The arcs, by number.
    arc: Tensor
    #: Row of the batch.
    row: Tensor
    query: Tensor
    target: Tensor
    #: The last word of the sentence.
    last: Tensor
    #: Read in place of `query`, unless that points to the last word: Clark's rule for 's.
    instead: Tensor


def arc_targets(
    arcs: Arcs, direction: str, *, causal: bool, guarded: bool, device: torch.device | str = "cpu"
) -> ArcTargets:
    """The targets of a direction.

    Where attention looks back only (`causal`), an arc counts if its target can be seen. The root
    has no word to point at: it counts where everything is visible, and is never right. `guarded`
    keeps the condition of Clark et al.'s program under which the word behind a possessor stands
    for it; else it always does.
    """
    child, head = arcs.dependent, arcs.head
    if direction == "head->dep":
        query, instead, target = head, head, child
        kept, seen = head != ROOT, child < head
    else:
        query, instead, target = (child if guarded else arcs.source), arcs.source, head
        kept = np.ones(len(arcs), dtype=bool)
        seen = head < query if direction == "dep->head" else head > query
    if causal:
        kept = kept & seen & (head != ROOT)
    parts = [np.arange(len(arcs)), arcs.row, query, target, arcs.length - 1, instead]
    return ArcTargets(*(torch.from_numpy(part[kept]).to(device) for part in parts))


def arc_hits(targets: ArcTargets, rows: Tensor, columns: Tensor) -> Tensor:
    """Whether each head is right, bool ``[arc, head]``, on the targets of all directions."""
    pointed = torch.cat([rows, columns], dim=-1).transpose(1, 2)
    found = pointed[targets.row, targets.query]
    instead = pointed[targets.row, targets.instead]
    return torch.where(found < targets.last[:, None], instead, found) == targets.target[:, None]


def offset_hits(targets: ArcTargets, offsets: Sequence[int], clamped: bool) -> Tensor:
    """Whether the word at each fixed offset is right, bool ``[arc, offset]``.

    Clark et al.'s program clamps: left of the sentence is the root, right of it its last word.
    """
    steps = torch.tensor(offsets, device=targets.row.device)
    found, instead = targets.query[:, None] + steps, targets.instead[:, None] + steps
    last, target = targets.last[:, None], targets.target[:, None]
    if clamped:
        found, instead = (one.clamp_min(ROOT).minimum(last) for one in (found, instead))
    else:
        target = target.masked_fill(target == ROOT, _NOWHERE)
    return torch.where(found < last, instead, found) == target


# --- The arcs of a batch and their cells --------------------------------------------------------


@dataclass(frozen=True)
class BatchArcs:
    """A batch's targets in all directions, and the cells they are counted in."""

    #: Those of all directions as one; columns are read behind the rows, at places from `words` on.
    targets: ArcTargets
    #: The cell of each of them; the cells of a direction follow those of the one before.
    cell: Tensor
    cells: BatchCells

    def hits(self, rows: Tensor, columns: Tensor) -> dict[str, Small]:
        """Hits by direction, ``[cell, head]``, of heads that point to these words."""
        directions, count = list(self.cells.arcs), len(self.cells.labels)
        right = arc_hits(self.targets, rows, columns)
        sums = hits_by_cell(self.cell, right, count * len(directions))
        return {d: sums[turn * count : (turn + 1) * count] for turn, d in enumerate(directions)}


def batch_arcs(
    arcs: Arcs,
    units: Sequence[Unit],
    directions: Sequence[str],
    offsets: Sequence[int],
    *,
    words: int,
    causal: bool,
    as_clark: bool,
    device: torch.device | str = "cpu",
) -> BatchArcs:
    """Lay out the arcs of a batch; `as_clark` clamps offsets and guards the rule for 's."""
    targets = {
        direction: arc_targets(arcs, direction, causal=causal, guarded=as_clark, device=device)
        for direction in directions
    }
    keys = [*zip(arcs.row.tolist(), arcs.labels, strict=True)]
    cells, cell = number_cells(keys, device)

    def counted(one: ArcTargets, right: Tensor) -> Small:
        return hits_by_cell(cell[one.arc], right, len(cells))

    shifts = {direction: words * (direction == "head<-dep") for direction in targets}
    parts = [
        (one.arc, one.row, one.query + shifts[d], one.target, one.last, one.instead + shifts[d])
        for d, one in targets.items()
    ]
    return BatchArcs(
        ArcTargets(*(torch.cat(part) for part in zip(*parts, strict=True))),
        torch.cat([cell[one.arc] + n * len(cells) for n, one in enumerate(targets.values())]),
        BatchCells(
            units=tuple(units),
            unit=np.array([row for row, _ in cells], dtype=np.int16),
            labels=tuple(label for _, label in cells),
            arcs={d: counted(one, torch.ones_like(one.arc)) for d, one in targets.items()},
            offsets={
                d: counted(one, offset_hits(one, offsets, as_clark)) for d, one in targets.items()
            },
        ),
    )


# --- Which word a head points to ----------------------------------------------------------------


def most_attended(
    tiles: Iterable[tuple[slice, Tensor]], there: Tensor, zero_self: bool = False
) -> tuple[Tensor, Tensor]:
    """The word each word attends to most, and the word that attends to it most.

    Takes word maps ``[batch, head, those words, word]`` without special tokens, some rows at a time
    and in their order (`word_tiles`), and the words that are there ``[batch, word]``; gives two
    ``[batch, head, word]``. The word itself is left out. Clark et al.'s program sets its weight to
    0 instead (`zero_self`), so that a row of zeros points to the first word, be it itself. Among
    equals the first word wins.

    >>> maps = torch.tensor([[[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]]])
    >>> rows, columns = most_attended([(slice(0, 3), maps)], torch.ones(1, 3, dtype=torch.bool))
    >>> rows[0, 0].tolist(), columns[0, 0].tolist()
    ([1, 2, 0], [2, 2, 1])
    """
    rows, most, column = [], None, None
    for some, maps in tiles:
        places = torch.arange(there.shape[1], device=maps.device)
        own = places[some, None] == places
        hidden = ~(there[:, None, :] & there[:, some, None])
        maps, hidden = (maps * ~own, hidden) if zero_self else (maps, hidden | own)
        # Adding minus infinity takes a fifth of the time that filling it in takes; and an argmax
        # along a far axis three times as long as one along columns laid side by side.
        allowed = maps + maps.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[:, None]
        rows.append(allowed.argmax(-1))
        received = allowed.transpose(-1, -2).contiguous()
        word = received.argmax(-1, keepdim=True)
        weight, word = received.gather(-1, word)[..., 0], word[..., 0] + some.start
        if most is not None and column is not None:
            word = torch.where(weight > most, word, column)
            weight = torch.maximum(weight, most)
        most, column = weight, word
    assert column is not None
    return torch.cat(rows, dim=-1), column


# --- Counts become the frame `relations` --------------------------------------------------------

#: The promised columns, then ours.
COLUMNS = (*FRAMES["relations"], "p_bh", "sentences", "selected", "note")


def relation_frame(
    counts: Sequence[RelationCounts], test: HitsTest, *, root: bool = False
) -> pd.DataFrame:
    """A row for each head, relation, direction and split; `root` keeps the root's own row."""
    _check_relations(counts, test)
    parts = [figure_frame(one.heads, _blocks(one, test, root)) for one in counts]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = pd.concat(parts, ignore_index=True)
    correct_tests(frame, frame.index[frame["p"].notna()], test.level)
    return frame.rename(columns={"texts": "sentences"})[list(COLUMNS)]


def _check_relations(counts: Sequence[RelationCounts], test: HitsTest) -> None:
    """Refuse a relation that was asked for and never occurs."""
    there = {name for one in counts for sub in (True, False) for name in one.relations(sub)} | {ALL}
    for name in test.relations or ():
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(there))}."
            raise UsageError(f"The relation '{name}' never occurs in this treebank; {hint}")


def _blocks(counts: RelationCounts, test: HitsTest, root: bool) -> Iterator[dict[str, Any]]:
    """One block of rows, a head each, for every relation, direction and split that has arcs."""
    found = counts.relations()
    usual = [ALL, *(name for name in found if name != "_" and (root or name.lower() != "root"))]
    in_select = in_selection(counts.units, test.seed)
    for relation in usual if test.relations is None else test.relations:
        for direction in counts.directions:
            hits = counts.of(relation, direction)
            chosen, few = in_select[hits.unit], int(hits.arcs.sum()) < test.support
            note = f"fewer than {test.support} arcs" if few else ""
            best, naive = (
                [(place, {"offset": np.nan if place is None else float(counts.tried[place])})]
                for part in (hits.offsets[chosen], hits.offsets)
                for place in [best_offset(part, counts.tried)]
            )
            baselines = {"select": best, "report": best, "all": naive}
            for figures in figures_by_split(hits, chosen, baselines, test):
                yield {"relation": relation, "direction": direction, "note": note, **figures}


# --- How well each head points along dependency arcs, by relation and direction -----------------

#: Offsets that the baseline may choose from; Clark et al.'s program knows -3 to 2.
OFFSETS = tuple(range(-8, 9))
CLARKS_OFFSETS = tuple(range(-3, 3))

_CROSS = "queries and keys are different texts, so no dependency joins them"


@dataclass
class Relations(HitsTally):
    """Hits of every head and of every fixed offset on the arcs of a treebank, sentence by sentence.

    - `headcount`: a word cannot point to itself, special tokens are left out, the row of a word is
      the mean over its pieces; offsets -8 to 8.
    - `paper`: as Clark et al.'s program, with the mean over pieces that the text names; the weight
      on the word itself counts as 0, offsets are -3 to 2 and end at the sentence's edge, and the
      's behind a possessor stands for it.
    - `code`: the same with the row of the first piece, which is what the program does.

    In a stack that looks back only, arcs whose target cannot be seen yet are left out, for heads
    and offsets alike. `all` counts every word, the root and punctuation too.
    """

    convention: str = "headcount"
    #: How rows of a word's pieces become one; by convention where None.
    rows: Rows | None = None
    directions: Sequence[str] | None = None
    offsets: Sequence[int] | None = None
    #: Whether the 's behind a possessor stands for it; by convention where None.
    possessive: bool | None = None
    test: HitsTest = field(default_factory=HitsTest)
    _arcs: BatchCache[BatchArcs] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_convention(self.convention)
        for direction in self.directions or ():
            if direction not in DIRECTIONS:
                raise UsageError(
                    f"There is no direction '{direction}'; choose {', '.join(DIRECTIONS)}."
                )
            if direction == "head->dep":
                check_convention(self.convention, "The direction 'head->dep' does")

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; nothing where the words are not known."""
        site, words = sighting.site, sighting.queries.words
        if site.stack == "cross":
            self._skipped[site] = _CROSS
            return
        if words is None or not sighting.readable:
            return
        arcs = self._arcs.get(
            sighting.batch, (site.stack, site.causal), lambda: self._batch_arcs(sighting, words)
        )
        if not arcs.cells.labels:
            return
        tiles = self._tiles(sighting, words, self._rows)
        found = most_attended(tiles, words.there, zero_self=self._as_clark)
        self._seen[site].append(SiteHits(arcs.cells, arcs.hits(*found)))
        self._keep(site, arcs, words, found)

    def _keep(
        self, site: Site, arcs: BatchArcs, words: Words, found: tuple[Tensor, Tensor]
    ) -> None:
        """Keep more of the words that each word points to; by default nothing."""

    def compute(self) -> list[Reading]:
        """No column: see `details`; NaN where the attention is not a number."""
        return [Reading.broken("relations", site) for site in self._broken]

    def details(self) -> dict[str, pd.DataFrame]:
        """`relations`: a row for each head, relation, direction and split; none without trees."""
        return {"relations": self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """The frame `relations`; an error where no word has a head."""
        if not self._seen:
            raise InputError(
                "No word of this text has a head and a relation, so dependency arcs cannot be "
                "scored; give a treebank with the columns HEAD and DEPREL, or parse the text first."
            )
        return relation_frame(self.counts(), self.test, root=self._as_clark)

    @property
    def remarks(self) -> list[str]:
        """What a reader of the frame must know of it."""
        causal = sorted({site.stack for site in self._seen if site.causal})
        return [f"cross: {_CROSS}"] * bool(self._skipped) + [
            f"{stack}: attention looks back only, so arcs count whose target stands before"
            for stack in causal
        ]

    @property
    def tried(self) -> tuple[int, ...]:
        """The offsets that the baseline is chosen from."""
        if self.offsets is not None:
            return tuple(self.offsets)
        return CLARKS_OFFSETS if self._as_clark else OFFSETS

    @property
    def _as_clark(self) -> bool:
        return self.convention != "headcount"

    @property
    def _rows(self) -> Rows:
        return self.rows or ("first" if self.convention == "code" else "mean")

    @property
    def _directions(self) -> tuple[str, ...]:
        if self.directions is not None:
            return tuple(self.directions)
        return tuple(d for d in DIRECTIONS if self.convention != "code" or d != "head->dep")

    @property
    def _marks(self) -> frozenset[str]:
        if not (self._as_clark if self.possessive is None else self.possessive):
            return frozenset()
        return CLARKS_MARKS if self._as_clark else MARKS

    def _batch_arcs(self, sighting: Sighting, words: Words) -> BatchArcs:
        texts = [sentence.text if sentence else "" for sentence in words.sentences]
        return batch_arcs(
            arcs_of(words, self._marks),
            [Unit.of(*unit) for unit in zip(sighting.batch.index, texts, strict=True)],
            self._directions,
            self.tried,
            words=words.there.shape[1],
            causal=sighting.site.causal,
            as_clark=self._as_clark,
            device=words.there.device,
        )


def _planned(subject: Any, corpus: Any, options: Any) -> Relations:
    test = HitsTest(relations=options.relations)
    # The ladder of nulls reads every arc by itself.
    ladder = plugins.part("nulls") if options.nulls else None
    kind = Relations if ladder is None else ladder.PointingRelations
    made: Relations = kind(options.convention, rows=options.word_rows, test=test)
    return made


#: Relations among the tallies of the registry.
PLAN = TallyPlan(_planned, "treebank")
