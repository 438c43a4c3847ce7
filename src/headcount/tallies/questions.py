"""What a direction asks of a head's argmax, arc by arc, and whether the answer is right.

Three directions, for a head and a dependency arc:

- ``dep->head``: does the row of the dependent point to its head? (Clark; Voita)
- ``head->dep``: does the row of the head word point to the dependent? (Voita et al. 2019, section
  5.2: the verb's row must find the subject; a verb has one row and may have many dependents)
- ``head<-dep``: is the head the word that attends most to the dependent? (Clark et al. 2019,
  section 4.2: the column of the dependent, so every word gets one head)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.tallies.arcs import ROOT, Arcs

__all__ = ["DIRECTIONS", "Question", "answers", "offset_answers", "question_of"]

DIRECTIONS = ("dep->head", "head->dep", "head<-dep")

# No word and no offset is ever here.
_NOWHERE = -(2**40)


@dataclass(frozen=True)
class Question:
    """One direction's questions, one an arc: whom is asked, and which answer is right."""

    direction: str
    #: The arcs asked about, by number.
    arc: Tensor
    #: Row of the batch.
    row: Tensor
    asked: Tensor
    #: Who answers instead, unless the asked word points to the last word: Clark's rule for 's.
    instead: Tensor
    right: Tensor
    #: The last word of the sentence.
    last: Tensor

    def __len__(self) -> int:
        return len(self.arc)


def question_of(
    arcs: Arcs, direction: str, *, causal: bool, guarded: bool, device: torch.device | str = "cpu"
) -> Question:
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
    parts = (np.arange(len(arcs)), arcs.row, asked, instead, right, arcs.length - 1)
    return Question(direction, *(torch.from_numpy(part[kept]).to(device) for part in parts))


def answers(question: Question, rows: Tensor, columns: Tensor) -> Tensor:
    """Whether each head is right, bool ``[arc, head]``, from what it points to."""
    pointed = (columns if question.direction == "head<-dep" else rows).transpose(1, 2)
    first = pointed[question.row, question.asked]
    second = pointed[question.row, question.instead]
    said = torch.where(first < question.last[:, None], second, first)
    return said == question.right[:, None]


def offset_answers(question: Question, offsets: Sequence[int], clamped: bool) -> Tensor:
    """Whether the word at each fixed offset is right, bool ``[arc, offset]``.

    Clark et al.'s program clamps: left of the sentence is the root, right of it its last word.
    """
    steps = torch.tensor(offsets, device=question.row.device)
    first, second = question.asked[:, None] + steps, question.instead[:, None] + steps
    last, right = question.last[:, None], question.right[:, None]
    if clamped:
        first, second = (said.clamp_min(ROOT).minimum(last) for said in (first, second))
    else:
        right = right.masked_fill(right == ROOT, _NOWHERE)
    return torch.where(first < last, second, first) == right
