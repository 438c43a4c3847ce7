"""How well each head points along dependency arcs, by relation and direction.

Voita et al., ACL 2019, section 5.2, and Clark et al., BlackBoxNLP 2019, section 4.2 and Table 1.
The three directions are told in `questions`; the numbers end as the frame `relations`.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import InputError, StatsError, UsageError, check_convention
from headcount.models import Site
from headcount.records import FRAMES, STACKS, Column, Head
from headcount.survey.tallies.counts import (
    ALL,
    BatchCells,
    RelationCounts,
    RelationTest,
    SiteHits,
    Small,
    Unit,
    counts_of,
    figures_by_split,
    in_selection,
)
from headcount.survey.tally import Reading
from headcount.text import Rows, Word, Words, word_maps
from headcount.wiring import Needs, Sighting

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
    #: Whose prediction counts: the dependent, or the 's behind a possessor.
    speaker: Places
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

    `marks` are the forms behind a possessor that speak for it (Clark et al. 2019, section 4.2:
    heads attend from 's, not from the possessor); an empty set turns that rule off.
    """
    sentences = [sentence.words or () if sentence else () for sentence in words.sentences]
    flat = [word for sentence in sentences for word in sentence]
    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    row, length = np.repeat(np.arange(len(sizes)), sizes), np.repeat(sizes, sizes)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    head = np.array([_UNKNOWN if word.head is None else word.head - 1 for word in flat], np.int64)
    speaker = place + _marked(flat, place + 1 < length, marks)
    kept = (head >= ROOT) & (head < length) & (head != place)
    # The root has no head that could be missing: ask for the word itself.
    ends = np.stack([place, speaker, np.where(head == ROOT, place, head)])[:, kept]
    kept[kept] = words.there.cpu().numpy()[row[kept], ends].all(axis=0)
    labels = tuple(flat[number].deprel or "_" for number in np.flatnonzero(kept).tolist())
    return Arcs(row[kept], place[kept], speaker[kept], head[kept], length[kept], labels)


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


# --- What a direction asks of a head's argmax ---------------------------------------------------
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
    """Questions, one an arc: whom is asked, and which answer is right."""

    #: The arcs asked about, by number.
    arc: Tensor
    #: Row of the batch.
    row: Tensor
    asked: Tensor
    right: Tensor
    #: The last word of the sentence.
    last: Tensor
    #: Who answers instead, unless the asked word points to the last word: Clark's rule for 's.
    instead: Tensor | None = None

    def __len__(self) -> int:
        return len(self.arc)


def arc_targets(
    arcs: Arcs, direction: str, *, causal: bool, guarded: bool, device: torch.device | str = "cpu"
) -> ArcTargets:
    """The questions of a direction.

    Where attention looks back only (`causal`), an arc counts if its target can be seen. The root
    has no word to point at: asked all the same where everything is visible, and never right.
    `guarded` keeps the condition of Clark et al.'s program under which the word behind a possessor
    speaks for it; else it always does.
    """
    child, head = arcs.dependent, arcs.head
    if direction == "head->dep":
        asked, instead, right = head, head, child
        kept, seen = head != ROOT, child < head
    else:
        asked, instead, right = (child if guarded else arcs.speaker), arcs.speaker, head
        kept = np.ones(len(arcs), dtype=bool)
        seen = head < asked if direction == "dep->head" else head > asked
    if causal:
        kept = kept & seen & (head != ROOT)
    parts = [np.arange(len(arcs)), arcs.row, asked, right, arcs.length - 1]
    parts += [instead] if guarded else []
    return ArcTargets(*(torch.from_numpy(part[kept]).to(device) for part in parts))


def join_targets(questions: Mapping[str, ArcTargets], words: int) -> ArcTargets:
    """The questions of all directions as one; columns are asked behind the rows, from `words` on.

    So one look at what a head points to answers them all.
    """
    shifts = {direction: words * (direction == "head<-dep") for direction in questions}
    guarded = any(question.instead is not None for question in questions.values())
    parts = [
        (q.arc, q.row, q.asked + shifts[d], q.right, q.last, _speakers(q) + shifts[d])
        for d, q in questions.items()
    ]
    joined = [torch.cat(part) for part in zip(*parts, strict=True)]
    return ArcTargets(*joined[: 6 if guarded else 5])


def arc_hits(question: ArcTargets, rows: Tensor, columns: Tensor) -> Tensor:
    """Whether each head is right, bool ``[arc, head]``, on the questions of all directions."""
    pointed = torch.cat([rows, columns], dim=-1).transpose(1, 2)
    said = pointed[question.row, question.asked]
    if question.instead is not None:
        instead = pointed[question.row, question.instead]
        said = torch.where(said < question.last[:, None], instead, said)
    return said == question.right[:, None]


def offset_hits(question: ArcTargets, offsets: Sequence[int], clamped: bool) -> Tensor:
    """Whether the word at each fixed offset is right, bool ``[arc, offset]``.

    Clark et al.'s program clamps: left of the sentence is the root, right of it its last word.
    """
    steps = torch.tensor(offsets, device=question.row.device)
    said, instead = question.asked[:, None] + steps, _speakers(question)[:, None] + steps
    last, right = question.last[:, None], question.right[:, None]
    if clamped:
        said, instead = (one.clamp_min(ROOT).minimum(last) for one in (said, instead))
    else:
        right = right.masked_fill(right == ROOT, _NOWHERE)
    return torch.where(said < last, instead, said) == right


def _speakers(question: ArcTargets) -> Tensor:
    return question.asked if question.instead is None else question.instead


# --- The questions of a batch and its cells -----------------------------------------------------


@dataclass(frozen=True)
class BatchArcs:
    """A batch's questions, and the ground on which heads answer them."""

    #: Those of all directions as one.
    question: ArcTargets
    #: The cell of each of them; the cells of a direction follow those of the one before.
    cell: Tensor
    ground: BatchCells


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
    questions = {
        direction: arc_targets(arcs, direction, causal=causal, guarded=as_clark, device=device)
        for direction in directions
    }
    keys = [*zip(arcs.row.tolist(), arcs.labels, strict=True)]
    cells = sorted(set(keys))
    number = {key: place for place, key in enumerate(cells)}
    cell = torch.tensor([number[key] for key in keys], dtype=torch.long, device=device)
    ground = _ground(cells, cell, units, questions, offsets, as_clark)
    turns = [cell[q.arc] + turn * len(cells) for turn, q in enumerate(questions.values())]
    return BatchArcs(join_targets(questions, words), torch.cat(turns), ground)


def _ground(
    cells: Sequence[tuple[int, str]],
    cell: Tensor,
    units: Sequence[Unit],
    questions: Mapping[str, ArcTargets],
    offsets: Sequence[int],
    clamped: bool,
) -> BatchCells:
    def counted(question: ArcTargets, right: Tensor) -> Small:
        return _added(cell[question.arc], right, len(cells))

    return BatchCells(
        units=tuple(units),
        unit=np.array([row for row, _ in cells], dtype=np.int16),
        labels=tuple(label for _, label in cells),
        arcs={d: counted(q, torch.ones_like(q.arc)) for d, q in questions.items()},
        offsets={d: counted(q, offset_hits(q, offsets, clamped)) for d, q in questions.items()},
    )


def hits_by_cell(asked: BatchArcs, right: Tensor) -> dict[str, Small]:
    """Right answers ``[arc, head]`` counted in their cells, ``[cell, head]`` for each direction."""
    directions = list(asked.ground.arcs)
    cells = len(asked.ground.labels)
    sums = _added(asked.cell, right, cells * len(directions))
    return {d: sums[turn * cells : (turn + 1) * cells] for turn, d in enumerate(directions)}


def _added(cell: Tensor, right: Tensor, cells: int) -> Small:
    sums = torch.zeros(cells, *right.shape[1:], dtype=torch.int16, device=right.device)
    return sums.index_add_(0, cell, right.to(torch.int16)).cpu().numpy()


# --- Which word a head points to ----------------------------------------------------------------


def most_attended(maps: Tensor, there: Tensor, zero_self: bool = False) -> tuple[Tensor, Tensor]:
    """The word each word attends to most, and the word that attends to it most.

    Takes word maps ``[batch, head, word, word]`` without special tokens and the words that are
    there ``[batch, word]``; gives two ``[batch, head, word]``. The word itself is left out.
    Clark et al.'s program sets its weight to 0 instead (`zero_self`), so that a row of zeros
    points to the first word, be it itself. Among equals the first word wins.

    >>> maps = torch.tensor([[[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]]])
    >>> rows, columns = most_attended(maps, torch.ones(1, 3, dtype=torch.bool))
    >>> rows[0, 0].tolist(), columns[0, 0].tolist()
    ([1, 2, 0], [2, 2, 1])
    """
    own = torch.eye(there.shape[1], dtype=torch.bool, device=maps.device)
    hidden = ~(there[:, None, :] & there[:, :, None])
    if zero_self:
        maps = maps * ~own
    else:
        hidden = hidden | own
    # Adding minus infinity takes a fifth of the time that filling it in takes; and an argmax
    # along a far axis three times as long as one along columns laid side by side.
    allowed = maps + maps.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[:, None]
    return allowed.argmax(-1), allowed.transpose(-1, -2).contiguous().argmax(-1)


# --- Counts become the frame `relations` --------------------------------------------------------

#: The promised columns, then ours.
COLUMNS = (*FRAMES["relations"], "p_bh", "sentences", "selected", "note")

_KEY = ["stack", "relation", "direction"]


def relation_frame(
    counts: Sequence[RelationCounts], test: RelationTest, *, root: bool = False
) -> pd.DataFrame:
    """A row for each head, relation, direction and split; `root` keeps the root's own row."""
    _check_relations(counts, test)
    blocks = [block for one in counts for block in _blocks(one, test, root)]
    if not blocks:
        return pd.DataFrame(columns=list(COLUMNS))
    return _corrected(_stacked(blocks), test)


def _check_relations(counts: Sequence[RelationCounts], test: RelationTest) -> None:
    """Refuse a relation that was asked for and never occurs."""
    there = {name for one in counts for sub in (True, False) for name in one.relations(sub)} | {ALL}
    for name in test.relations or ():
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(there))}."
            raise UsageError(f"The relation '{name}' never occurs in this treebank; {hint}")


def _names(counts: RelationCounts, test: RelationTest, root: bool) -> list[str]:
    if test.relations is not None:
        return list(test.relations)
    found = counts.relations(test.subtypes)
    return [ALL, *(name for name in found if name != "_" and (root or name.lower() != "root"))]


def _blocks(counts: RelationCounts, test: RelationTest, root: bool) -> Iterator[dict[str, Any]]:
    """One block of rows, a head each, for every relation, direction and split that has arcs."""
    chosen = in_selection(counts.units, test.seed)
    stack, layer, head = zip(*counts.heads, strict=True)
    for relation in _names(counts, test, root):
        for direction in counts.directions:
            found = counts.of(relation, direction, test.subtypes)
            for figures in figures_by_split(found, chosen[found.unit], counts.tried, test):
                key = {"relation": relation, "direction": direction}
                yield {"stack": stack, "layer": layer, "head": head, **key, **figures}


def _stacked(blocks: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Blocks below one another; what is one value for a block is repeated for its heads."""
    sizes = [len(block["head"]) for block in blocks]
    return pd.DataFrame(
        {
            name: np.concatenate(
                [
                    np.broadcast_to(block[name], size)
                    for block, size in zip(blocks, sizes, strict=True)
                ]
            )
            for name in blocks[0]
        }
    )


def _corrected(frame: pd.DataFrame, test: RelationTest) -> pd.DataFrame:
    """Drop the tests that cannot answer, with the reason, and correct the others together."""
    tests = int(frame["p"].notna().sum())
    for _, group in frame[frame["p"].notna()].groupby(_KEY, sort=False):
        why = _why_none(int(group["sentences"].iloc[0]), tests, test.level)
        if why:
            frame.loc[group.index, "p"] = np.nan
            frame.loc[group.index, "note"] = why
    p = frame["p"].to_numpy(dtype=float)
    adjusted = {"p_adjusted": stats.holm(p), "p_bh": stats.benjamini_hochberg(p)}
    return frame.assign(**adjusted)[list(COLUMNS)]


def _why_none(sentences: int, tests: int, level: float) -> str:
    try:
        stats.check_resolution(tests=tests, sentences=sentences, level=level, alternative="greater")
    except StatsError as error:
        return str(error)
    return ""


# --- How well each head points along dependency arcs, by relation and direction -----------------

#: Offsets that the baseline may choose from; Clark et al.'s program knows -3 to 2.
OFFSETS = tuple(range(-8, 9))
CLARKS_OFFSETS = tuple(range(-3, 3))

_CROSS = "queries and keys are different texts, so no dependency joins them"


@dataclass
class Relations:
    """Hits of every head and of every fixed offset on the arcs of a treebank, sentence by sentence.

    - `headcount`: a word cannot be its own answer, special tokens are none, the row of a word is
      the mean over its pieces; offsets -8 to 8.
    - `paper`: as Clark et al.'s program, with the mean over pieces that the text names; the weight
      on the word itself counts as 0, offsets are -3 to 2 and end at the sentence's edge, and the
      's behind a possessor speaks for it.
    - `code`: the same with the row of the first piece, which is what the program does.

    In a stack that looks back only, arcs whose target cannot be seen yet are left out, for heads
    and offsets alike. `all` counts every word, the root and punctuation too.
    """

    convention: str = "headcount"
    #: How rows of a word's pieces become one; by convention where None.
    rows: Rows | None = None
    directions: Sequence[str] | None = None
    offsets: Sequence[int] | None = None
    #: Whether the 's behind a possessor speaks for it; by convention where None.
    possessive: bool | None = None
    test: RelationTest = field(default_factory=RelationTest)

    needs = Needs(maps=True)
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_convention(self.convention)
        for direction in self.directions or ():
            self._check_direction(direction)
        self._seen: dict[Site, list[SiteHits]] = defaultdict(list)
        self._broken: set[Site] = set()
        self._crossed = False
        self._last: tuple[object, dict[tuple[str, bool], BatchArcs]] = (None, {})

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; silent where the words are not known."""
        if sighting.site.stack == "cross":
            self._crossed = True
            return
        words = sighting.queries.words
        if words is None or sighting.maps is None:
            return
        asked = self._asked(sighting, words)
        if not asked.ground.labels:
            return
        maps = word_maps(sighting.maps, words, words, rows=self._rows)
        if bool(torch.isnan(maps.sum())):
            self._broken.add(sighting.site)
        rows, columns = most_attended(maps, words.there, zero_self=self._as_clark)
        hits = hits_by_cell(asked, arc_hits(asked.question, rows, columns))
        self._seen[sighting.site].append(SiteHits(asked.ground, hits))

    def merge(self, other: Self) -> None:
        """Take in the counts of another part of the corpus."""
        for site, seen in other._seen.items():
            self._seen[site].extend(seen)
        self._broken |= other._broken
        self._crossed |= other._crossed

    def compute(self) -> list[Reading]:
        """No column: see `details`. Attention that is no number is told as such."""
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

    def counts(self) -> list[RelationCounts]:
        """The counts by sentence, one for each stack."""
        by_stack: dict[str, dict[tuple[Head, ...], list[SiteHits]]] = defaultdict(dict)
        for site in sorted(self._seen, key=_in_order):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, self._offsets) for seen in by_stack.values()]

    @property
    def remarks(self) -> list[str]:
        """What a reader of the frame must know of it."""
        causal = sorted({site.stack for site in self._seen if site.causal})
        told = [f"cross: {_CROSS}"] if self._crossed else []
        return told + [
            f"{stack}: attention looks back only, so arcs count whose target stands before"
            for stack in causal
        ]

    @property
    def _as_clark(self) -> bool:
        return self.convention != "headcount"

    @property
    def _rows(self) -> Rows:
        return self.rows or ("first" if self.convention == "code" else "mean")

    @property
    def _offsets(self) -> tuple[int, ...]:
        if self.offsets is not None:
            return tuple(self.offsets)
        return CLARKS_OFFSETS if self._as_clark else OFFSETS

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

    def _check_direction(self, direction: str) -> None:
        if direction not in DIRECTIONS:
            raise UsageError(
                f"There is no direction '{direction}'; choose {', '.join(DIRECTIONS)}."
            )
        if direction == "head->dep":
            check_convention(self.convention, "The direction 'head->dep' does")

    def _asked(self, sighting: Sighting, words: Words) -> BatchArcs:
        """The questions of a batch, made for the first site of a stack and kept for the others."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        key = (sighting.site.stack, sighting.site.causal)
        if key not in made:
            made[key] = self._ask(sighting, words)
        return made[key]

    def _ask(self, sighting: Sighting, words: Words) -> BatchArcs:
        return batch_arcs(
            arcs_of(words, self._marks),
            [Unit.of(*unit) for unit in zip(sighting.batch.index, _texts(words), strict=True)],
            self._directions,
            self._offsets,
            words=words.there.shape[1],
            causal=sighting.site.causal,
            as_clark=self._as_clark,
            device=words.there.device,
        )


def _texts(words: Words) -> list[str]:
    """The text of each row's sentence."""
    return [sentence.text if sentence else "" for sentence in words.sentences]


def _in_order(site: Site) -> tuple[int, int, int]:
    return STACKS.index(site.stack), site.layer, site.call
