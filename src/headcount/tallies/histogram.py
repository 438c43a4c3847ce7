"""Histograms of offsets: where heads point, where they could, and what a blind pick would do."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headcount.wiring.sighting import Sighting

__all__ = [
    "REACH",
    "histogram",
    "most_frequent",
    "pairs_at",
    "possible",
    "uniform",
    "widened",
    "within_reach",
]

#: Offsets this far away and further share one bin at each end; such a bin is no offset.
REACH = 512


def histogram(keys: Tensor, rows: Tensor) -> Tensor:
    """Counts of key - query, `[batch, head, offset]`, as far as this batch reaches."""
    batch, heads, queries = keys.shape
    reach = min(REACH, queries - 1)
    offsets = keys - torch.arange(queries, device=keys.device)
    bins = offsets.clamp(-reach, reach) + reach
    counts = torch.zeros(batch, heads, 2 * reach + 1, dtype=torch.float64, device=keys.device)
    return counts.scatter_add_(2, bins, rows[:, None, :].expand_as(bins).double())


def within_reach(counts: Tensor) -> Tensor:
    """Counts by offset, without those beyond the histogram."""
    more = max(0, counts.shape[-1] // 2 - REACH)
    return counts[..., more : counts.shape[-1] - more]


def widened(counts: Tensor) -> Tensor:
    """A batch's histogram in the middle of one from -REACH to +REACH."""
    more = REACH - counts.shape[-1] // 2
    return torch.nn.functional.pad(counts, (more, more))


def most_frequent(counts: np.ndarray) -> int:
    """The fullest bin of one offset; among equals the nearest, then the left one.

    >>> counts = np.zeros(2 * REACH + 1)
    >>> counts[[0, REACH - 1]] = 9, 1  # mostly far to the left, at many offsets
    >>> most_frequent(counts) - REACH
    -1
    """
    inner = counts[1:-1]
    full = np.flatnonzero(inner == inner.max()) + 1
    return int(min(full, key=lambda place: (abs(place - REACH), place)))


def possible(sighting: Sighting, rows: Tensor, keys: Tensor) -> Tensor:
    """Tokens of each sentence that have a key at each offset, `[batch, offset]`.

    Offsets run from -(T-1) to T-1, T being the width of the batch. The first token has none to
    its left, the last none to its right, and nothing lies to the right in a causal stack.
    """
    return _cut(sighting, pairs_at(rows.double(), keys.double())).round()


def uniform(sighting: Sighting, rows: Tensor, keys: Tensor) -> Tensor:
    """How many tokens a pick among all visible keys would put at each offset, `[batch, offset]`."""
    seen = keys.cumsum(-1) if sighting.site.causal else keys.sum(-1, keepdim=True)
    seen = torch.minimum(seen.expand_as(rows), sighting.visible)
    weights = torch.where(rows & (seen > 0), 1.0 / seen.clamp_min(1), 0.0)
    return _cut(sighting, pairs_at(weights.double(), keys.double()))


def pairs_at(rows: Tensor, keys: Tensor) -> Tensor:
    """Sum over places i of rows[i] * keys[i + offset], for every offset, by Fourier transform.

    >>> ones = torch.ones(1, 3, dtype=torch.float64)
    >>> pairs_at(ones, ones).round().tolist()
    [[1.0, 2.0, 3.0, 2.0, 1.0]]
    """
    width = rows.shape[-1]
    turned = torch.fft.rfft(keys, 2 * width) * torch.fft.rfft(rows, 2 * width).conj()
    around = torch.fft.irfft(turned, 2 * width)
    return torch.cat([around[..., width + 1 :], around[..., :width]], dim=-1)


def _cut(sighting: Sighting, counts: Tensor) -> Tensor:
    """Nothing to the right in a causal stack; no traces of rounding."""
    if sighting.site.causal:
        counts[..., counts.shape[-1] // 2 + 1 :] = 0
    return counts.clamp_min(0)
