from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from headcount.rooms.exhibits.stage import pack_map


def unpack_map(text: str, heads: int, queries: int, keys: int) -> np.ndarray:
    """What a browser makes of `pack_map`."""
    data = zlib.decompress(base64.b64decode(text))
    tops = np.frombuffer(data, "<u2", heads * queries).reshape(heads, queries, 1)
    weights = np.frombuffer(data, "u1", offset=2 * heads * queries)
    return weights.reshape(heads, queries, keys) / 255 * (tops / 65535)


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores)
    return raised / raised.sum(-1, keepdims=True)


@pytest.mark.parametrize("sharp", [0.5, 3.0, 12.0])
def test_weights_come_back_within_the_promise(sharp: float) -> None:
    maps = softmax(np.random.default_rng(0).normal(0, sharp, (3, 40, 50))).astype("float32")
    back = unpack_map(pack_map(maps), *maps.shape)
    assert np.abs(back - maps).max() <= 0.002
    assert (back.argmax(-1) == maps.argmax(-1)).mean() > 0.98


def test_broad_rows_keep_their_order_where_coarse_ones_lose_it() -> None:
    maps = softmax(np.random.default_rng(0).normal(0, 0.3, (1, 64, 512))).astype("float32")
    kept = [
        (unpack_map(pack_map(maps, fineness), *maps.shape).argmax(-1) == maps.argmax(-1)).mean()
        for fineness in ("fine", "coarse")
    ]
    assert kept[0] > 0.9 > kept[1]


def test_rows_of_nothing_stay_nothing() -> None:
    maps = np.zeros((1, 2, 3), dtype="float32")
    assert (unpack_map(pack_map(maps), 1, 2, 3) == 0).all()
