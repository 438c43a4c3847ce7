"""Maps in one small file: roots of the weights as bytes, one map after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray


class Kept(NamedTuple):
    """A map as it was kept: rows add up to 1 again, weights are exact to about 1/500."""

    weights: NDArray[np.float32]
    special: NDArray[np.bool_]
    #: The number of each token's text; None where a drawing does not tell.
    segment: NDArray[np.int64] | None


def tensors(one: Kept) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """What the judges take: one map as a stack of one, specials, segments."""
    segment = None if one.segment is None else torch.from_numpy(one.segment)
    return torch.from_numpy(one.weights)[None], torch.from_numpy(one.special), segment


def write_maps(path: Path, maps: Sequence[Any]) -> None:
    """Write weights, specials and segments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    roots = [np.rint(255 * np.sqrt(one.weights)).astype(np.uint8).ravel() for one in maps]
    np.savez_compressed(
        path,
        roots=np.concatenate(roots),
        special=np.concatenate([one.special for one in maps]),
        segment=np.concatenate([one.segment for one in maps]).astype(np.uint8),
        size=np.array([len(one.weights) for one in maps], dtype=np.uint8),
    )


def read_maps(path: Path) -> list[Kept]:
    """The maps in their order."""
    with np.load(path) as kept:
        sizes = kept["size"].astype(int)
        roots = np.split(kept["roots"], np.cumsum(sizes**2)[:-1])
        special = np.split(kept["special"], np.cumsum(sizes)[:-1])
        segment = np.split(kept["segment"].astype(np.int64), np.cumsum(sizes)[:-1])
    weights = [_weights(root.reshape(n, n)) for root, n in zip(roots, sizes, strict=True)]
    return [Kept(*one) for one in zip(weights, special, segment, strict=True)]


def _weights(roots: NDArray[np.uint8]) -> NDArray[np.float32]:
    squares = np.square(roots.astype(np.float32) / 255)
    return squares / np.maximum(squares.sum(1, keepdims=True), 1e-9)
