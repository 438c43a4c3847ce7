"""The questions of a batch and its cells: what is the same for every layer, made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.tallies.arcs import Arcs
from headcount.tallies.questions import Question, offset_answers, question_of
from headcount.tallies.relation_counts import Ground, Small, Unit

__all__ = ["Asked", "ask", "by_cell"]


@dataclass(frozen=True)
class Asked:
    """A batch's questions, one a direction, and the ground on which heads answer them."""

    questions: tuple[Question, ...]
    #: The cell of each arc: its sentence and its relation.
    cell: Tensor
    ground: Ground


def ask(
    arcs: Arcs,
    units: Sequence[Unit],
    directions: Sequence[str],
    offsets: Sequence[int],
    *,
    causal: bool,
    as_clark: bool,
    device: torch.device | str = "cpu",
) -> Asked:
    """Lay out the arcs of a batch; `as_clark` clamps offsets and guards the rule for 's."""
    questions = tuple(
        question_of(arcs, direction, causal=causal, guarded=as_clark, device=device)
        for direction in directions
    )
    keys = [*zip(arcs.row.tolist(), arcs.labels, strict=True)]
    cells = sorted(set(keys))
    number = {key: place for place, key in enumerate(cells)}
    cell = torch.tensor([number[key] for key in keys], dtype=torch.long, device=device)
    return Asked(questions, cell, _ground(cells, cell, units, questions, offsets, as_clark))


def _ground(
    cells: Sequence[tuple[int, str]],
    cell: Tensor,
    units: Sequence[Unit],
    questions: Sequence[Question],
    offsets: Sequence[int],
    clamped: bool,
) -> Ground:
    def counted(question: Question, right: Tensor) -> Small:
        return _added(cell[question.arc], right, len(cells))

    return Ground(
        units=tuple(units),
        unit=np.array([row for row, _ in cells], dtype=np.int16),
        labels=tuple(label for _, label in cells),
        arcs={q.direction: counted(q, torch.ones_like(q.arc)) for q in questions},
        offsets={q.direction: counted(q, offset_answers(q, offsets, clamped)) for q in questions},
    )


def by_cell(asked: Asked, question: Question, right: Tensor) -> Small:
    """Right answers ``[arc, head]`` counted in their cells, ``[cell, head]``."""
    return _added(asked.cell[question.arc], right, len(asked.ground.labels))


def _added(cell: Tensor, right: Tensor, cells: int) -> Small:
    sums = torch.zeros(cells, *right.shape[1:], dtype=torch.int32, device=right.device)
    return sums.index_add_(0, cell, right.int()).to(torch.int16).cpu().numpy()
