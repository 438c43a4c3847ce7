"""Pairs of places as one question: the largest weight among them, and among the same pairs moved.

Kovaleva et al., EMNLP 2019, sections 4.1 and 4.3, score a link between words by the largest
attention over its pairs of tokens. Pairs that lie close, or are many, score high by that alone; so
the same pairs are also moved along the text, to every other place where they fit, and averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from headcount.tallies.paired_means import Compared

__all__ = ["PairQuestions", "Pairs", "pair_questions"]

Pairs = Sequence[tuple[int, int]]


class _Laid(NamedTuple):
    """Pairs one after another, and the group whose largest each of them may be."""

    row: Tensor
    source: Tensor
    target: Tensor
    group: Tensor
    groups: int


@dataclass(frozen=True)
class PairQuestions:
    """The pairs of a batch: `own` of each row and question, `moved` once for every move."""

    own: _Laid
    moved: _Laid
    #: The cell (row and question, counted through) of each group.
    own_cell: Tensor
    moved_cell: Tensor
    rows: int
    questions: int

    def compared(self, maps: Tensor) -> Compared:
        """Each row's figures for each question, from maps ``[batch, head, place, place]``."""
        value, there = self._mean(_largest(maps, self.own), self.own_cell)
        baseline, known = self._mean(_largest(maps, self.moved), self.moved_cell)
        return Compared(value, there, baseline, known)

    def _mean(self, values: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of each cell's groups, ``[batch, head, question]``, and where there is one."""
        cells = self.rows * self.questions
        sums = values.new_zeros(cells, values.shape[1]).index_add_(0, cell, values)
        count = torch.bincount(cell, minlength=cells)
        mean = sums / count.clamp_min(1)[:, None]
        shaped = mean.view(self.rows, self.questions, -1).transpose(1, 2)
        return shaped, (count > 0).view(self.rows, self.questions)


def pair_questions(
    asked: Sequence[Sequence[Pairs]],
    bounds: Sequence[tuple[int, int]],
    device: torch.device | str = "cpu",
) -> PairQuestions:
    """Lay out pairs ``[row][question]``; `bounds` are the first and last place of each text.

    >>> found = pair_questions([[[(0, 1)]]], [(0, 2)])
    >>> maps = torch.tensor([[[[0.0, 0.7, 0.3], [0.5, 0.1, 0.4], [0.2, 0.2, 0.6]]]])
    >>> found.compared(maps).value.tolist(), found.compared(maps).baseline.tolist()
    ([[[0.69...]]], [[[0.40...]]])
    """
    questions = len(asked[0]) if asked else 0
    own = [
        (row, row * questions + number, list(pairs))
        for row, lists in enumerate(asked)
        for number, pairs in enumerate(lists)
        if pairs
    ]
    moved = [
        (row, cell, [(source + step, target + step) for source, target in pairs])
        for row, cell, pairs in own
        for step in _steps(pairs, *bounds[row])
    ]
    cells = [torch.tensor([cell for _, cell, _ in part], dtype=torch.long) for part in (own, moved)]
    return PairQuestions(
        _laid(own, device),
        _laid(moved, device),
        cells[0].to(device),
        cells[1].to(device),
        len(asked),
        questions,
    )


def _steps(pairs: Pairs, first: int, last: int) -> list[int]:
    """How far the pairs can be moved together and stay inside the text."""
    places = [place for pair in pairs for place in pair]
    return [step for step in range(first - min(places), last - max(places) + 1) if step]


def _laid(groups: Sequence[tuple[int, int, Pairs]], device: torch.device | str) -> _Laid:
    flat = [
        (row, source, target, number)
        for number, (row, _, pairs) in enumerate(groups)
        for source, target in pairs
    ]
    numbers = torch.tensor(flat, dtype=torch.long, device=device).reshape(-1, 4)
    row, source, target, group = numbers.unbind(1)
    return _Laid(row, source, target, group, len(groups))


def _largest(maps: Tensor, laid: _Laid) -> Tensor:
    """The largest weight of each group, ``[group, head]``."""
    weights = maps[laid.row, :, laid.source, laid.target]
    found = weights.new_full((laid.groups, maps.shape[1]), -torch.inf)
    return found.scatter_reduce_(0, laid.group[:, None].expand_as(weights), weights, "amax")
