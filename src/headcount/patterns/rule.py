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

    The thresholds were tuned on 364 maps that were looked at, of heads that no test uses. A plain
    block of two texts has 0.5 beyond what columns would put there, so 0.22 is not quite half.

    >>> nothing = torch.zeros(8, dtype=torch.long)
    >>> PATTERNS[Rule()(torch.eye(8)[None], nothing.bool(), nothing)]
    'diagonal'
    """

    #: The least weight in standing columns, along the diagonal, and within own texts.
    columns: float = 0.15
    diagonal: float = 0.25
    block: float = 0.22
    #: When a column stands out, and what is near the diagonal; see `traits_of`.
    lift: float = 1.5
    rows: float = 0.6
    reach: float = 0.06

    def __call__(self, maps: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
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
