"""The attention-and-words probe: how much a head counts depends on the two words.

Clark et al. 2019, section 5, equation 2: the weights of the heads are a linear function of the
vectors of dependent and candidate, [v_i; v_j]. That splits into a part for each word, which is
computed once for it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

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
        """The scores; only ROOT's column needs a gradient of the maps, so it is made apart."""
        both, weights = self._maps(batch), self._weights(batch)
        column = with_root(both[..., : 1 + EXTRA], self.root)[..., :1]
        words = both[..., EXTRA:, EXTRA:]
        root = (column * weights[..., :1]).sum(1)
        return torch.cat([root, (words * weights[..., 1:]).sum(1)], dim=-1)

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each head's part of the scores, both directions together."""
        parts = with_root(self._maps(batch), self.root) * self._weights(batch)
        forth, back = parts.chunk(2, dim=1)
        return forth + back

    def _maps(self, batch: ProbeBatch) -> Tensor:
        """Maps of both directions, one after the other."""
        assert batch.maps is not None
        return torch.cat([batch.maps, batch.maps.transpose(2, 3)], dim=1)

    def _weights(self, batch: ProbeBatch) -> Tensor:
        """What each map counts for each pair, ``[batch, 2 * head, word, candidate]``."""
        words = self.vectors[batch.words]
        candidates, told = candidate_vectors(words, batch.sizes, self.shifted)
        by_dependent, by_candidate = self.kernel.chunk(2)
        dependent = (words @ by_dependent).transpose(1, 2)[..., None]
        candidate = (candidates @ by_candidate + self.bias).transpose(1, 2)[:, :, None]
        return (dependent * told[:, None, None] if self.shifted else dependent) + candidate


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
