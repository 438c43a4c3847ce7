"""The coreferent mentions of a batch as questions: who is asked, who may be named, who is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.tallies.antecedents import BASELINES, before
from headcount.tallies.choices import DIRECTION, counted
from headcount.tallies.mentions import Mention, mentions_of
from headcount.tallies.relation_counts import Ground, Small, Unit
from headcount.text.words import Words

__all__ = ["Candidates", "MentionQuestions", "mention_questions"]

#: Which words a head may choose from: those before, the heads of mentions before, or all words.
Candidates = Literal["preceding", "mentions", "all"]

Places = NDArray[np.int64]


class _Asked(NamedTuple):
    """One mention with an antecedent: places are words of its row, those not there left out."""

    row: int
    place: int
    mention: Mention
    right: list[int]
    named: list[int]
    baselines: list[bool]


@dataclass(frozen=True)
class MentionQuestions:
    """The questions of a batch, one a mention, and the ground they are counted on."""

    row: Tensor
    asked: Tensor
    #: Which words are right, and which may be chosen: bool ``[question, word]``.
    right: Tensor
    allowed: Tensor
    #: The cell (text and kind of mention) of each question.
    cell: Tensor
    ground: Ground

    def hits(self, maps: Tensor) -> Small:
        """Right answers by cell and head, from maps between the words that are there."""
        weights = maps[self.row, :, self.asked]
        picks = weights.masked_fill(~self.allowed[:, None], -torch.inf).argmax(-1)
        return counted(self.cell, self.right.gather(1, picks), len(self.ground.labels))


def mention_questions(
    words: Words, units: Sequence[Unit], candidates: Candidates, *, causal: bool
) -> MentionQuestions:
    """Every mention that has an antecedent whose head word is in the same row."""
    there = words.there.cpu().numpy()
    asked = [
        question
        for row, sentence in enumerate(words.sentences)
        if sentence is not None and sentence.clusters
        for question in _row_questions(row, mentions_of(sentence), there[row])
    ]
    lengths = there.sum(1)
    keys = [(question.row, question.mention.kind) for question in asked]
    cells = sorted(set(keys))
    cell = torch.tensor([cells.index(key) for key in keys], dtype=torch.long)
    right = _places([question.right for question in asked], lengths.max(initial=0))
    choice = "preceding" if causal and candidates == "all" else candidates
    device = words.there.device
    return MentionQuestions(
        row=torch.tensor([question.row for question in asked], dtype=torch.long, device=device),
        asked=torch.tensor([question.place for question in asked], dtype=torch.long, device=device),
        right=right.to(device),
        allowed=_allowed(asked, lengths, choice).to(device),
        cell=cell.to(device),
        ground=_ground(asked, cells, cell, units),
    )


def _row_questions(
    row: int, mentions: Sequence[Mention], there: NDArray[np.bool_]
) -> Iterator[_Asked]:
    place = np.cumsum(there) - 1
    seen = [mention for mention in mentions if there[mention.head]]
    for mention in seen:
        earlier = before(mention, seen)
        right = [other.head for other in earlier if other.entity == mention.entity]
        if right:
            picks = [pick(mention, earlier) for pick in BASELINES.values()]
            hits = [other is not None and other.head in right for other in picks]
            named = place[[other.head for other in earlier]].tolist()
            yield _Asked(row, int(place[mention.head]), mention, place[right].tolist(), named, hits)


def _allowed(asked: Sequence[_Asked], lengths: Places, candidates: Candidates) -> Tensor:
    width = int(lengths.max(initial=0))
    if candidates == "mentions":
        return _places([question.named for question in asked], width)
    own = np.array([question.place for question in asked], dtype=np.int64)[:, None]
    ends = lengths[[question.row for question in asked]].reshape(-1, 1)
    places = np.arange(width)[None]
    apart = places < own if candidates == "preceding" else (places != own) & (places < ends)
    return torch.from_numpy(apart)


def _places(lists: Sequence[Sequence[int]], width: int) -> Tensor:
    """Lists of places as bool ``[question, word]``."""
    room = torch.zeros(len(lists), width, dtype=torch.bool)
    for number, places in enumerate(lists):
        room[number, list(places)] = True
    return room


def _ground(
    asked: Sequence[_Asked],
    cells: Sequence[tuple[int, str]],
    cell: Tensor,
    units: Sequence[Unit],
) -> Ground:
    hits = torch.tensor([question.baselines for question in asked], dtype=torch.bool)
    hits = hits.reshape(len(asked), len(BASELINES))
    ones = torch.ones(len(asked), dtype=torch.bool)
    return Ground(
        units=tuple(units),
        unit=np.array([row for row, _ in cells], dtype=np.int16),
        labels=tuple(kind for _, kind in cells),
        arcs={DIRECTION: counted(cell, ones, len(cells))},
        offsets={DIRECTION: counted(cell, hits, len(cells))},
    )
