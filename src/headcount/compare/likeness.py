"""How alike two models' maps of the same text are, head by head: cosine and divergence.

Kovaleva et al., EMNLP 2019, section 4.3: the cosine of the flattened maps before and after
fine-tuning, averaged over texts. Their notebook flattens maps padded to 200 tokens, rows of padding
and all; by default maps are cut to the text here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
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
Sums = NDArray[np.float64]


@dataclass
class Likeness:
    """The cosine and the mean divergence of rows, for every text and head that both models have.

    A text that was cut into windows stays one text: its windows' maps are flattened one after
    another, and all its rows count alike.
    """

    #: By layer and figure: the texts' numbers, and the sums `[part, text, head]` it is made of.
    _kept: dict[tuple[Key, str], list[tuple[Sequence[int], Sums]]] = field(
        default_factory=lambda: defaultdict(list), init=False, repr=False
    )

    def add(
        self, match: Matched, first: Sighting, second: Sighting, numbers: Sequence[int]
    ) -> None:
        """Take in one layer of one batch; `numbers` tell which rows are of one text."""
        ours, theirs = _common(match, first, second)
        queries, keys = first.queries.real, first.keys.real
        there = queries[:, None, :, None] & keys[:, None, None, :]
        ours, theirs = ours.masked_fill(~there, 0), theirs.masked_fill(~there, 0)
        self._keep(match, "cosine", numbers, _products(ours, theirs))
        self._keep(match, "js", numbers, _divergence_sums(ours, theirs, queries, keys))

    def add_padded(
        self, match: Matched, first: Sighting, second: Sighting, numbers: Sequence[int]
    ) -> None:
        """Take in the cosine of maps as wide as they come, padding and all."""
        ours, theirs = _common(match, first, second)
        self._keep(match, "padded cosine", numbers, _products(ours, theirs))

    def texts(self, match: Matched, name: str) -> NDArray[np.float64]:
        """`cosine` or `js` of every text and head of a layer, `[text, head]`.

        The cosine is that of padded maps where those were taken in.
        """
        place = match.first.stack, match.first.layer
        kept = self._kept.get((place, f"padded {name}")) or self._kept[place, name]
        sums = _by_text(kept)
        return sums[0] / (np.sqrt(sums[1] * sums[2]) if name == "cosine" else sums[1])

    def _keep(self, match: Matched, name: str, numbers: Sequence[int], sums: Tensor) -> None:
        place = match.first.stack, match.first.layer
        self._kept[place, name].append((tuple(numbers), sums.cpu().numpy()))


def _by_text(kept: Sequence[tuple[Sequence[int], Sums]]) -> Sums:
    """Sums of rows of the same number put together, in the order of the numbers' first rows."""
    numbers = [number for some, _ in kept for number in some]
    spots = {number: spot for spot, number in enumerate(dict.fromkeys(numbers))}
    rows = np.concatenate([sums for _, sums in kept], axis=1).swapaxes(0, 1)
    found = np.zeros((len(spots), *rows.shape[1:]))
    np.add.at(found, np.array([spots[number] for number in numbers]), rows)
    return found.swapaxes(0, 1)


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
    product, one, other = _products(first, second)
    return product / (one * other).sqrt()


def divergences(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The mean Jensen-Shannon divergence of a text's rows `[text, head]`, smoothed as Clark's."""
    total, rows = _divergence_sums(first, second, queries, keys)
    return total / rows.clamp_min(1)


def _products(first: Tensor, second: Tensor) -> Tensor:
    """What a cosine is made of `[3, text, head]`: the maps' product, and each with itself."""
    one, other = first.flatten(2), second.flatten(2)
    pairs = ((one, other), (one, one), (other, other))
    return torch.stack([(a * b).sum(-1, dtype=torch.float64) for a, b in pairs])


def _divergence_sums(first: Tensor, second: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The sum of the rows' divergences, and how many rows there are, `[2, text, head]`."""
    there = keys[:, None, None, :]
    share = SMOOTHING / keys.sum(-1).clamp_min(1)[:, None, None, None]
    p, q = (torch.where(there, (1 - SMOOTHING) * maps + share, 1.0) for maps in (first, second))
    middle = (p + q) / 2
    each = (p * (p / middle).log() + q * (q / middle).log()) / 2
    total = (each.sum(-1, dtype=torch.float64) * queries[:, None, :]).sum(-1)
    return torch.stack([total, queries.sum(-1).double()[:, None].expand_as(total)])
