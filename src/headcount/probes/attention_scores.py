"""The attention-only probe: one weight for each head and direction.

Clark et al. 2019, section 5, equation 1: score(i, j) = sum over heads k of w_k a_ij + u_k a_ji.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.probes.batch import ProbeBatch
from headcount.probes.scorer import Scorer, glorot, with_root

__all__ = ["AttentionScores"]


class AttentionScores(Scorer):
    """`weights` has w of every head, then u; `root` what start and end count for ROOT.

    >>> scorer = AttentionScores(heads=72)
    >>> {name: tuple(weight.shape) for name, weight in scorer.named_parameters()}
    {'weights': (144,), 'root': (2,)}
    """

    def __init__(self, heads: int, seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.weights = glorot((2 * heads,), draw)
        self.root = glorot((2,), draw, fan=1)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores; heads are summed before ROOT's column is made, which is the same."""
        assert batch.maps is not None
        there, back = self.weights.chunk(2)
        both = torch.einsum("bkij,ck->bcij", batch.maps, torch.stack([there, back]))
        return with_root(both[:, 0] + both[:, 1].transpose(1, 2), self.root)

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each head's part of the scores."""
        assert batch.maps is not None
        there, back = self.weights.chunk(2)
        forth = with_root(batch.maps, self.root) * there[:, None, None]
        return forth + with_root(batch.maps.transpose(2, 3), self.root) * back[:, None, None]
