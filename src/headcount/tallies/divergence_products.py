"""Products of the features of every two heads, on the CPU, in one place that is used again.

Looking up and multiplying is faster than getting fresh memory from the system, so the places where
a part's features lie are kept for the next part.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.tallies.divergence_features import FIRST, SHIFT, STILL, TURNING, table

__all__ = ["Products"]


class Products:
    """Room for the features of so many float32 weights.

    >>> Products(2)(torch.tensor([[0.25], [0.25]])).round(4).tolist()  # alike: all are the same
    [[0.1733, 0.1733], [0.1733, 0.1733]]
    """

    def __init__(self, weights: int) -> None:
        self._bits = torch.empty(weights, dtype=torch.int32)
        self._places = torch.empty(weights, dtype=torch.int64)
        self._features = np.empty((weights, TURNING), dtype=np.float32)

    def __call__(self, weights: Tensor) -> NDArray[np.float64]:
        """Products `[head, head]` of weights `[head, weight]`, which turn to their square roots."""
        turning = self._turning(weights)
        still = weights.sqrt_().numpy()
        # of a matrix and itself turned NumPy computes one half
        return (turning @ turning.T).astype(np.float64) + STILL * (still @ still.T)

    def _turning(self, weights: Tensor) -> NDArray[np.float32]:
        count = weights.numel()
        bits, places = self._bits[:count], self._places[:count]
        torch.bitwise_right_shift(weights.view(-1).view(torch.int32), SHIFT, out=bits)
        places.copy_(bits.sub_(FIRST))
        found = self._features[:count]
        np.take(table(), places.numpy(), axis=0, out=found, mode="clip")
        return found.reshape(len(weights), -1)
