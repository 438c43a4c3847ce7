"""How alike two models' maps of the same text are, head by head: cosine and divergence.

Kovaleva et al., EMNLP 2019, section 4.3: the cosine of the flattened maps before and after
fine-tuning, averaged over texts. Their notebook flattens maps padded to 200 tokens, rows of padding
and all; by default maps are cut to the text here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.compare.matching import Matched
from headcount.tallies.divergence import SMOOTHING
from headcount.wiring.sighting import Sighting

__all__ = ["Likeness", "cosines", "divergences"]

Key = tuple[str, int]


@dataclass
class Likeness:
    """The cosine and the mean divergence of rows, for every text and head that both models have."""

    _kept: dict[tuple[Key, str], list[NDArray[np.float32]]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False
    )

    def add(self, match: Matched, first: Sighting, second: Sighting) -> None:
        """Take in one layer of one batch."""
        ours, theirs = _common(match, first, second)
        queries, keys = first.queries.real, first.keys.real
        there = queries[:, None, :, None] & keys[:, None, None, :]
        ours, theirs = ours.masked_fill(~there, 0), theirs.masked_fill(~there, 0)
        self._keep(match, "cosine", cosines(ours, theirs))
        self._keep(match, "js", divergences(ours, theirs, queries, keys))

    def add_padded(self, match: Matched, first: Sighting, second: Sighting) -> None:
        """Take in the cosine of maps as wide as they come, padding and all."""
        ours, theirs = _common(match, first, second)
        self._keep(match, "padded cosine", cosines(ours, theirs))

    def texts(self, match: Matched, name: str) -> NDArray[np.float64]:
        """`cosine` or `js` of every text and head of a layer, `[text, head]`.

        The cosine is that of padded maps where those were taken in.
        """
        place = match.first.stack, match.first.layer
        padded = self._kept.get((place, f"padded {name}"))
        return np.concatenate(padded or self._kept[place, name]).astype(np.float64)

    def _keep(self, match: Matched, name: str, values: Tensor) -> None:
        place = match.first.stack, match.first.layer
        self._kept[place, name].append(values.float().cpu().numpy())


def _common(match: Matched, first: Sighting, second: Sighting) -> tuple[Tensor, Tensor]:
    """The maps of the heads that both have, in one place."""
    assert first.maps is not None
    assert second.maps is not None
    ours = first.maps[:, list(match.first_rows)]
    return ours, second.maps.to(ours.device, ours.dtype)[:, list(match.second_rows)]


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """The cosine of flattened maps `[text, head, query, key]`, for each text and head.

    >>> float(cosines(torch.eye(3)[None, None], torch.full((1, 1, 3, 3), 1 / 3))[0, 0])
    0.577...
    """
    one, other = first.flatten(2), second.flatten(2)
    product = (one * other).sum(-1, dtype=torch.float64)
    sizes = (one.square().sum(-1, dtype=torch.float64), other.square().sum(-1, dtype=torch.float64))
    return product / (sizes[0] * sizes[1]).sqrt()


def divergences(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The mean Jensen-Shannon divergence of a text's rows `[text, head]`, smoothed as Clark's."""
    there = keys[:, None, None, :]
    share = SMOOTHING / keys.sum(-1).clamp_min(1)[:, None, None, None]
    p, q = (torch.where(there, (1 - SMOOTHING) * maps + share, 1.0) for maps in (first, second))
    middle = (p + q) / 2
    each = (p * (p / middle).log() + q * (q / middle).log()) / 2
    rows = each.sum(-1, dtype=torch.float64) * queries[:, None, :]
    return rows.sum(-1) / queries.sum(-1).clamp_min(1)[:, None]
