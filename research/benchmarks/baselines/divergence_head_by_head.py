"""Jensen-Shannon divergences of all pairs of heads, one head against all at a time, in NumPy.

A fixed baseline, written from Clark et al. 2019, section 6, the way one would: vectorised over
heads and tokens, float32.
"""

from __future__ import annotations

import numpy as np

__all__ = ["divergences"]


def divergences(maps: np.ndarray) -> np.ndarray:
    """Sums over rows, `[head, head]`, of maps `[head, query, key]`."""
    smooth = (np.float32(0.999) * maps + np.float32(0.001 / maps.shape[-1])).astype(np.float32)
    return np.stack([_one_against_all(head, smooth) for head in smooth])


def _one_against_all(head: np.ndarray, others: np.ndarray) -> np.ndarray:
    middle = (head + others) / 2
    ours = (head * np.log(head / middle)).sum((-1, -2))
    theirs = (others * np.log(others / middle)).sum((-1, -2))
    return np.asarray((ours + theirs) / 2)
