"""Features of attention weights between which Jensen-Shannon divergence is a plain distance.

The divergence of two distributions is a sum over keys of js(x, y), and js is the square of a
Euclidean distance (Fuglede and Topsoe 2004). Its features are waves in the logarithm (Vedaldi and
Zisserman 2012): js(x, y) = 1/2 * integral of sech(pi w) / (1 + 4 w^2) * |sqrt(x) e^(i w ln x) -
sqrt(y) e^(i w ln y)|^2 over w. So all pairs of heads need one matrix product of features instead
of a logarithm for each pair and key.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["FIRST", "SHIFT", "STILL", "TURNING", "WIDTH", "js_features", "table"]

#: Frequencies and weights that replace the integral: of all sums of so many waves, close to the one
#: whose largest relative error is least for weights up to a factor of e^20 apart. It is 1e-4.
_WAVES = (
    (0.30369134, 0.31379034),
    (0.65302455, 0.07188417),
    (1.09088463, 0.01142585),
    (1.75419104, 0.00112547),
)
#: The weight of the wave of frequency 0, whose only feature is a square root.
STILL = 0.29505212
#: Features that are looked up, a cosine and a sine a wave: 32 bytes, which NumPy takes fastest.
TURNING = 2 * len(_WAVES)
#: Features of each weight.
WIDTH = TURNING + 1

#: The table has a row for each leading bits of a float: its exponent and so many of the mantissa.
_MANTISSA = 13
SHIFT = 23 - _MANTISSA
#: Weights from 2^-36 to 2 have rows; what is smaller takes the first.
_LEAST, _MOST = 127 - 36, 128
#: Leading bits of the first row.
FIRST = _LEAST << _MANTISSA


def js_features(weights: Tensor) -> Tensor:
    """Features `[..., WIDTH]` of float32 weights in [0, 2).

    >>> one, other = js_features(torch.tensor([0.9, 0.1])), js_features(torch.tensor([0.2, 0.8]))
    >>> round(float((one - other).square().sum() / 2), 4)  # 0.5 KL(p|m) + 0.5 KL(q|m)
    0.2754
    """
    places = (weights.contiguous().view(torch.int32) >> SHIFT) - FIRST
    still = (weights * STILL).sqrt().unsqueeze(-1)
    return torch.cat([_table_on(weights.device)[places.clamp_min(0)], still], dim=-1)


@lru_cache(maxsize=1)
def table() -> NDArray[np.float32]:
    """Features `[leading bits, TURNING]` of the middle of all floats that begin with the same bits.

    A weight is off by 6e-5 of itself at most, up as often as down.
    """
    rows = np.arange(FIRST, _MOST << _MANTISSA, dtype=np.int32)
    weights = ((rows << SHIFT) + (1 << (SHIFT - 1))).view(np.float32).astype(np.float64)
    turns = np.log(weights)[:, None] * np.array([wave for wave, _ in _WAVES])
    sizes = np.sqrt(weights[:, None] * np.array([size for _, size in _WAVES]))
    features = np.concatenate([sizes * np.cos(turns), sizes * np.sin(turns)], axis=1)
    return features.astype(np.float32)


@lru_cache(maxsize=4)
def _table_on(device: torch.device) -> Tensor:
    return torch.from_numpy(table()).to(device)
