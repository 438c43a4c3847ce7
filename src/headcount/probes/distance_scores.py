"""The distances-and-words baseline: what words and their places tell without any attention.

Clark et al. 2019, section 5: a hidden layer of 256 tanh units over 8 features of the distance and
the vectors of both words.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headcount.probes.batch import ProbeBatch
from headcount.probes.scorer import Scorer, glorot
from headcount.probes.word_scores import candidate_vectors

__all__ = ["DistanceScores", "distances"]

#: Features of the distance, after one map of zeros that the authors' program has in their place.
FEATURES = 8
_OFFSETS = (0, -1, 1, -2, 2)


class DistanceScores(Scorer):
    """`kernel` ``[1 + 8 + 2 * width, hidden]``: an unused row, distances, dependent, candidate."""

    vectors: Tensor

    def __init__(
        self, vectors: Tensor, seed: int = 0, shifted: bool = False, hidden: int = 256
    ) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.kernel = glorot((1 + FEATURES + 2 * vectors.shape[1], hidden), draw)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.output = glorot((hidden, 1), draw)
        self.output_bias = nn.Parameter(torch.zeros(1))
        self.shifted = shifted
        self.register_buffer("vectors", vectors.float(), persistent=False)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores; what depends on one word is computed once for it."""
        width = self.vectors.shape[1]
        by_place, by_dependent, by_candidate = self.kernel[1:].split([FEATURES, width, width])
        words = self.vectors[batch.words]
        candidates, told = candidate_vectors(words, batch.sizes, self.shifted)
        hidden = distances(batch.sizes, words.shape[1]) @ by_place
        hidden = hidden + (words @ by_dependent)[:, :, None] * told[:, None, :, None]
        hidden = hidden + (candidates @ by_candidate + self.bias)[:, None]
        return (hidden.tanh() @ self.output)[..., 0] + self.output_bias


def distances(sizes: Tensor, most: int) -> Tensor:
    """Features ``[batch, word, candidate, 8]`` of sentences of these sizes.

    How far ahead a candidate stands, as a share of the sentence; how far behind; whether it
    stands at the offsets 0, -1, +1, -2, +2; whether it is ROOT.

    >>> distances(torch.tensor([2]), 2)[0, 0].tolist()[2]
    [0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    place = torch.arange(most, device=sizes.device)
    offset = (place[None, :] - place[:, None]).float()
    near = torch.stack([(offset == one).float() for one in _OFFSETS], dim=-1)
    far = torch.stack([offset.clamp(min=0), (-offset).clamp(min=0)], dim=-1)
    share = far / sizes[:, None, None, None]
    words = torch.cat([share, near.expand(len(sizes), -1, -1, -1)], dim=-1)
    found = torch.zeros(len(sizes), most, most + 1, FEATURES, device=sizes.device)
    found[:, :, 1:, : FEATURES - 1] = words
    found[:, :, 0, FEATURES - 1] = 1
    return found
