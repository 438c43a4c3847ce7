"""The questions of a batch and its cells: what is the same for every layer, made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.tallies.arcs import Arcs
from headcount.tallies.questions import Question, offset_answers, question_of, together
from headcount.tallies.relation_counts import Ground, Small, Unit

__all__ = ["Asked", "ask", "hits_by_cell"]


@dataclass(frozen=True)
class Asked:
    """A batch's questions, and the ground on which heads answer them."""

    #: Those of all directions as one.
    question: Question
    #: The cell of each of them; the cells of a direction follow those of the one before.
    cell: Tensor
    ground: Ground


def ask(
    arcs: Arcs,
    units: Sequence[Unit],
    directions: Sequence[str],
    offsets: Sequence[int],
    *,
    words: int,
    causal: bool,
    as_clark: bool,
    device: torch.device | str = "cpu",
) -> Asked:
    """Lay out the arcs of a batch; `as_clark` clamps offsets and guards the rule for 's."""
    questions = {
        direction: question_of(arcs, direction, causal=causal, guarded=as_clark, device=device)
        for direction in directions
    }
    keys = [*zip(arcs.row.tolist(), arcs.labels, strict=True)]
    cells = sorted(set(keys))
    number = {key: place for place, key in enumerate(cells)}
    cell = torch.tensor([number[key] for key in keys], dtype=torch.long, device=device)
    ground = _ground(cells, cell, units, questions, offsets, as_clark)
    turns = [cell[q.arc] + turn * len(cells) for turn, q in enumerate(questions.values())]
    return Asked(together(questions, words), torch.cat(turns), ground)


def _ground(
    cells: Sequence[tuple[int, str]],
    cell: Tensor,
    units: Sequence[Unit],
    questions: Mapping[str, Question],
    offsets: Sequence[int],
    clamped: bool,
) -> Ground:
    def counted(question: Question, right: Tensor) -> Small:
        return _added(cell[question.arc], right, len(cells))

    return Ground(
        units=tuple(units),
        unit=np.array([row for row, _ in cells], dtype=np.int16),
        labels=tuple(label for _, label in cells),
        arcs={d: counted(q, torch.ones_like(q.arc)) for d, q in questions.items()},
        offsets={d: counted(q, offset_answers(q, offsets, clamped)) for d, q in questions.items()},
    )


def hits_by_cell(asked: Asked, right: Tensor) -> dict[str, Small]:
    """Right answers ``[arc, head]`` counted in their cells, ``[cell, head]`` for each direction."""
    directions = list(asked.ground.arcs)
    cells = len(asked.ground.labels)
    sums = _added(asked.cell, right, cells * len(directions))
    return {d: sums[turn * cells : (turn + 1) * cells] for turn, d in enumerate(directions)}


def _added(cell: Tensor, right: Tensor, cells: int) -> Small:
    sums = torch.zeros(cells, *right.shape[1:], dtype=torch.int16, device=right.device)
    return sums.index_add_(0, cell, right.to(torch.int16)).cpu().numpy()
