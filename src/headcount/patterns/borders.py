"""Where the texts of a map meet, when nobody says: the parts that keep most weight inside."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["MOST_PARTS", "parts_of"]

#: A map is cut into two, three or four parts.
MOST_PARTS = 4
#: The fewest tokens of a part: fewer are a piece of the diagonal.
_LEAST = 3


def parts_of(gain: Tensor) -> Tensor:
    """The number `[head, token]` of the part of each token: squares along the diagonal.

    `gain` `[head, query, key]` is what a cell counts for when it is inside a square. One more part
    is taken only where it gains a twentieth of the rows' weight, so noise is not cut to pieces.

    >>> own = torch.block_diag(torch.ones(4, 4), torch.ones(6, 6)) - 0.5
    >>> parts_of(own[None])[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    heads, size, _ = gain.shape
    inside = _squares(gain)
    best, came = inside[:, 0], []
    totals = []
    for _ in range(MOST_PARTS - 1):
        best, start = (best[:, :, None] + inside).max(1)
        came.append(start)
        totals.append(best[:, -1] - 0.05 * size * len(came))
    parts = torch.stack(totals, 1).argmax(1) + 2
    found = torch.zeros(heads, size, dtype=torch.long, device=gain.device)
    for head in range(heads):
        end = size
        for turn in range(int(parts[head]) - 2, -1, -1):
            end = int(came[turn][head, end])
            found[head, end:] += 1
    return found


def _squares(gain: Tensor) -> Tensor:
    """The gain `[head, start, end]` of the square of each run of tokens; short runs have none."""
    heads, size, _ = gain.shape
    summed = gain.new_zeros(heads, size + 1, size + 1)
    summed[:, 1:, 1:] = gain.cumsum(1).cumsum(2)
    corner = summed.diagonal(dim1=1, dim2=2)
    inside = corner[:, None] - summed - summed.transpose(1, 2) + corner[:, :, None]
    places = torch.arange(size + 1, device=gain.device)
    short = places - places[:, None] < min(_LEAST, size // 2)
    return inside.masked_fill(short, -torch.inf)
