"""What a direction asks of a head's argmax, arc by arc, and whether the answer is right.

Three directions, for a head and a dependency arc:

- ``dep->head``: does the row of the dependent point to its head? (Clark; Voita)
- ``head->dep``: does the row of the head word point to the dependent? (Voita et al. 2019, section
  5.2: the verb's row must find the subject; a verb has one row and may have many dependents)
- ``head<-dep``: is the head the word that attends most to the dependent? (Clark et al. 2019,
  section 4.2: the column of the dependent, so every word gets one head)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.tallies.arcs import ROOT, Arcs

__all__ = ["DIRECTIONS", "Question", "answers", "offset_answers", "question_of", "together"]

DIRECTIONS = ("dep->head", "head->dep", "head<-dep")

# No word and no offset is ever here.
_NOWHERE = -(2**40)


@dataclass(frozen=True)
class Question:
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
    parts = [np.arange(len(arcs)), arcs.row, asked, right, arcs.length - 1]
    parts += [instead] if guarded else []
    return Question(*(torch.from_numpy(part[kept]).to(device) for part in parts))


def together(questions: Mapping[str, Question], words: int) -> Question:
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
    return Question(*joined[: 6 if guarded else 5])


def answers(question: Question, rows: Tensor, columns: Tensor) -> Tensor:
    """Whether each head is right, bool ``[arc, head]``, on the questions of all directions."""
    pointed = torch.cat([rows, columns], dim=-1).transpose(1, 2)
    said = pointed[question.row, question.asked]
    if question.instead is not None:
        instead = pointed[question.row, question.instead]
        said = torch.where(said < question.last[:, None], instead, said)
    return said == question.right[:, None]


def offset_answers(question: Question, offsets: Sequence[int], clamped: bool) -> Tensor:
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


def _speakers(question: Question) -> Tensor:
    return question.asked if question.instead is None else question.instead
