"""Maps as text for a page: rows scaled to their maximum, a byte a weight, deflated, base64.

Scaled by row, the key that a query looks at most survives even in broad rows of long texts.
"""

from __future__ import annotations

import base64
import zlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fineness", "deflated", "pack", "unpack"]

Fineness = Literal["fine", "coarse", "none"]


def pack(maps: NDArray[np.float32], fineness: Fineness = "fine") -> str:
    """The map ``[head, query, key]`` of one layer as ASCII: u16 maxima, then u8 weights.

    ``coarse`` takes 1 as every row's maximum, which loses small weights and packs smaller.
    """
    exact = np.clip(np.nan_to_num(np.asarray(maps, dtype="float64")), 0, 1)
    top = exact.max(axis=-1) if fineness == "fine" else np.ones(exact.shape[:-1])
    tops = np.ceil(top * 65535).astype("<u2")
    scale = np.maximum(tops / 65535, 1e-9)[..., None]
    weights = np.rint(255 * exact / scale).astype("u1")
    return deflated(tops.tobytes() + weights.tobytes())


def deflated(data: bytes) -> str:
    """Bytes as base64 of their deflated form; a browser inflates it by itself."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def unpack(text: str, heads: int, queries: int, keys: int) -> NDArray[np.float64]:
    """What a browser makes of `pack`.

    >>> maps = np.array([[[0.25, 0.75], [0.5, 0.5]]], dtype="float32")
    >>> bool(np.allclose(unpack(pack(maps), 1, 2, 2), maps, atol=0.002))
    True
    """
    data = zlib.decompress(base64.b64decode(text))
    tops = np.frombuffer(data, "<u2", heads * queries).reshape(heads, queries, 1)
    weights = np.frombuffer(data, "u1", offset=2 * heads * queries)
    return weights.reshape(heads, queries, keys) / 255 * (tops / 65535)
