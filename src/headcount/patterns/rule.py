"""A documented rule for the five patterns: three masses and a threshold for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.patterns.kinds import PATTERNS
from headcount.patterns.traits import traits_of

__all__ = ["Rule"]

_VERTICAL, _DIAGONAL, _BOTH, _BLOCK, _REST = range(len(PATTERNS))


@dataclass(frozen=True)
class Rule:
    """Say which pattern a map shows by its weight in columns, along the diagonal, in own texts.

    The thresholds of columns and diagonal were tuned on maps that were looked at, of heads that no
    test uses; blocks were too rare there, so theirs is half of what a plain drawn block has.

    >>> nothing = torch.zeros(8, dtype=torch.long)
    >>> PATTERNS[Rule()(torch.eye(8)[None], nothing.bool(), nothing)]
    'diagonal'
    """

    #: The least weight in standing columns, along the diagonal, and within own texts.
    columns: float = 0.25
    diagonal: float = 0.12
    block: float = 0.25
    #: When a column stands out, and what is near the diagonal; see `traits_of`.
    lift: float = 1.5
    rows: float = 0.6
    reach: float = 0.04

    def __call__(self, maps: Tensor, special: Tensor, segment: Tensor) -> Tensor:
        """The number of the pattern of each map `[head, query, key]` of one text."""
        settings = {"lift": self.lift, "rows": self.rows, "reach": self.reach}
        found = traits_of(maps, special, segment, **settings)
        vertical, diagonal = found.columns >= self.columns, found.diagonal >= self.diagonal
        answer = torch.full_like(vertical, _REST, dtype=torch.long)
        answer[vertical] = _VERTICAL
        answer[diagonal] = _DIAGONAL
        answer[vertical & diagonal] = _BOTH
        answer[(found.block >= self.block) & (found.block > found.diagonal)] = _BLOCK
        return answer
