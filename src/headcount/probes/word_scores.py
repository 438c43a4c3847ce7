"""The attention-and-words probe: how much a head counts depends on the two words.

Clark et al. 2019, section 5, equation 2: the weights of the heads are a linear function of the
vectors of dependent and candidate, [v_i; v_j]. That splits into a part for each word, which is
computed once for it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from headcount.probes.batch import ProbeBatch
from headcount.probes.layout import EXTRA
from headcount.probes.scorer import Scorer, glorot, with_root

__all__ = ["WordScores", "candidate_vectors"]


class WordScores(Scorer):
    """`kernel` ``[2 * width, 2 * heads]`` and `bias` make weights of words; `root` as ever.

    `vectors` ``[row, width]`` are frozen. `shifted` puts the words of every candidate one place
    too early, as the authors' program does (its issue 17).
    """

    vectors: Tensor

    def __init__(self, heads: int, vectors: Tensor, seed: int = 0, shifted: bool = False) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.kernel = glorot((2 * vectors.shape[1], 2 * heads), draw)
        self.bias = nn.Parameter(torch.zeros(2 * heads))
        self.root = glorot((2,), draw, fan=1)
        self.shifted = shifted
        self.register_buffer("vectors", vectors.float(), persistent=False)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores: two products for each place, and no weight for any pair is ever written."""
        assert batch.maps is not None
        dependent, candidate, told = self._weights(batch)
        (own, own_back), (other, other_back) = dependent.chunk(2, -1), candidate.chunk(2, -1)
        by_row = torch.stack([own, other_back], dim=2) @ batch.maps.transpose(1, 2)
        by_column = torch.stack([own_back, other], dim=2) @ batch.maps.permute(0, 3, 1, 2)
        of_dependent = by_row[:, :, 0] + by_column[:, :, 0]
        of_candidate = by_row[:, :, 1] + by_column[:, :, 1]
        both = of_dependent * told[:, None] + of_candidate.transpose(1, 2)
        return with_root(both, self.root)

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each head's part of the scores, both directions together."""
        assert batch.maps is not None
        dependent, candidate, told = self._weights(batch)
        weights = dependent[:, :, None] * told[:, None, :, None] + candidate[:, None]
        forth, back = weights.permute(0, 3, 1, 2).chunk(2, dim=1)
        both = batch.maps * forth + batch.maps.transpose(2, 3) * back
        return with_root(both, self.root)

    def _weights(self, batch: ProbeBatch) -> tuple[Tensor, Tensor, Tensor]:
        """What the maps count by dependent and by candidate, ``[batch, place, 2 * head]`` each.

        Last, ``[batch, place]``: whether the dependent has a say at this candidate. Places are
        start, end, the words; at the first two the candidate is ROOT, and there is no dependent.
        """
        words = self.vectors[batch.words]
        candidates, told = candidate_vectors(words, batch.sizes, self.shifted)
        by_dependent, by_candidate = self.kernel.chunk(2)
        dependent = pad(words @ by_dependent, (0, 0, EXTRA, 0))
        candidate = candidates @ by_candidate + self.bias
        return dependent, _twice_root(candidate), _twice_root(told)


def _twice_root(of_candidates: Tensor) -> Tensor:
    """Candidates as places: ROOT is start as well as end."""
    return torch.cat([of_candidates[:, :1], of_candidates], dim=1)


def candidate_vectors(words: Tensor, sizes: Tensor, shifted: bool) -> tuple[Tensor, Tensor]:
    """The vector of each candidate, ``[batch, 1 + n, width]``, and where the dependent counts.

    ROOT has a vector of zeros, in front. Shifted, it stands behind the last word instead, and the
    dependent's vector is zero there as well.

    >>> words = torch.tensor([[[1.0], [2.0]]])
    >>> candidate_vectors(words, torch.tensor([2]), shifted=False)[0].flatten().tolist()
    [0.0, 1.0, 2.0]
    >>> [part.flatten().tolist() for part in candidate_vectors(words, torch.tensor([2]), True)]
    [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]]
    """
    nothing = torch.zeros_like(words[:, :1])
    told = torch.ones(words.shape[0], words.shape[1] + 1, device=words.device)
    if not shifted:
        return torch.cat([nothing, words], dim=1), told
    told[torch.arange(len(sizes), device=words.device), sizes] = 0
    return torch.cat([words, nothing], dim=1), told
