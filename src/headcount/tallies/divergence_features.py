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
from torch import Tensor
from torch.nn.functional import embedding_bag

__all__ = ["WIDTH", "js_features"]

#: Frequencies and weights that replace the integral: of all sums of so many waves, close to the one
#: whose largest relative error is least for weights up to a factor of e^20 apart. It is 6e-5.
_WAVES = (
    (0.14364013, 0.48704578),
    (0.45077119, 0.16592311),
    (0.80928207, 0.03411671),
    (1.25969144, 0.00543138),
    (1.93880945, 0.00053182),
)
#: Features of each weight: a cosine and a sine a wave.
WIDTH = 2 * len(_WAVES)

#: The table has a row for each leading bits of a float: its exponent and so many of the mantissa.
_MANTISSA = 8
_SHIFT = 23 - _MANTISSA
#: Weights from 2^-36 to 2 have features; what is smaller counts as 0.
_LEAST, _MOST = 127 - 36, 128


def js_features(weights: Tensor) -> Tensor:
    """Features `[..., WIDTH]` of float32 weights in [0, 2).

    Looked up by the leading bits of each weight, and straight between two rows of the table.

    >>> one, other = js_features(torch.tensor([0.9, 0.1])), js_features(torch.tensor([0.2, 0.8]))
    >>> round(float((one - other).square().sum() / 2), 4)  # 0.5 KL(p|m) + 0.5 KL(q|m)
    0.2754
    """
    bits = weights.contiguous().flatten().view(torch.int32)
    places = torch.empty(len(bits), 2, dtype=torch.int32, device=bits.device)
    shares = torch.empty(len(bits), 2, dtype=torch.float32, device=bits.device)
    torch.bitwise_right_shift(bits, _SHIFT, out=places[:, 0])
    torch.add(places[:, 0], 1, out=places[:, 1])
    torch.mul(bits & ((1 << _SHIFT) - 1), 2.0**-_SHIFT, out=shares[:, 1])
    torch.sub(1.0, shares[:, 1], out=shares[:, 0])
    ends = torch.arange(0, 2 * len(bits) + 2, 2, dtype=torch.int32, device=bits.device)
    found = embedding_bag(
        places.view(-1), _table(bits.device), ends, mode="sum",
        per_sample_weights=shares.view(-1), include_last_offset=True,
    )  # fmt: skip
    return found.view(*weights.shape, WIDTH)


@lru_cache(maxsize=4)
def _table(device: torch.device) -> Tensor:
    """Features of every float whose mantissa ends in zeros, by its leading bits."""
    rows = np.arange((_MOST << _MANTISSA) + 1, dtype=np.int32)
    weights = (rows << _SHIFT).view(np.float32).astype(np.float64)
    weights[: _LEAST << _MANTISSA] = 0
    turns = np.log(np.maximum(weights, 1e-30))[:, None] * np.array([wave for wave, _ in _WAVES])
    sizes = np.sqrt(weights[:, None] * np.array([size for _, size in _WAVES]))
    features = np.concatenate([sizes * np.cos(turns), sizes * np.sin(turns)], axis=1)
    return torch.from_numpy(features.astype(np.float32)).to(device)
