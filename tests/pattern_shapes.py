"""Shapes drawn from the words of the definition: another hand than the one that drew for training.

Kovaleva et al. 2019, section 4.1. Noise is a Dirichlet draw a row, lines are boxes, stripes are as
many as asked for, and a text may have up to four parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SIZES = (8, 12, 20, 33, 64, 128, 256, 512)
KINDS = (
    "vertical",
    "diagonal",
    "vertical_diagonal",
    "block",
    "heterogeneous",
    "vertical causal",
    "diagonal causal",
    "block striped",
)


class Shape(NamedTuple):
    """One drawn map, what stands at its places, and the pattern that it is."""

    pattern: str
    weights: Floats
    special: NDArray[np.bool_]
    segment: NDArray[np.int64]


def shapes(kind: str, size: int, count: int) -> list[Shape]:
    """So many maps of one kind and size, the same in every run."""
    dice = np.random.default_rng([KINDS.index(kind), size])
    return [_shape(kind, size, dice) for _ in range(count)]


def _shape(kind: str, size: int, dice: np.random.Generator) -> Shape:
    pattern, _, how = kind.partition(" ")
    causal = how == "causal"
    parts = _parts(size, dice) if pattern == "block" or (not causal and size >= 12) else 1
    special, segment = _places(size, parts, causal, dice)
    stripes, line = _stripes(special, dice), _line(size, causal, dice)
    noise = dice.dirichlet(np.full(size, dice.uniform(0.3, 3)), size)
    one = dice.uniform(0.5, 0.85)
    mixed = {
        "vertical": one * stripes,
        "diagonal": one * line,
        "vertical_diagonal": 0.9 * one * stripes / 2 + 1.1 * one * line / 2,
        "block": one * _own(segment) + (how == "striped") * (1 - one) * stripes,
        "heterogeneous": 0 * line,
    }[pattern]
    weights = mixed + (1 - mixed.sum(1, keepdims=True)).clip(0.02) * noise
    weights = np.tril(weights) if causal else weights
    return Shape(pattern, weights / weights.sum(1, keepdims=True), special, segment)


def _parts(size: int, dice: np.random.Generator) -> int:
    """Two to four texts, each long enough to be a square and not a piece of the diagonal."""
    return int(dice.integers(2, 5)) if size >= 33 else 2


def _places(
    size: int, parts: int, causal: bool, dice: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """`[CLS] a [SEP] b [SEP] ...` with parts of unequal length; causal texts have a start alone."""
    share = np.cumsum(dice.uniform(1, 2.2, parts))
    ends = np.rint(share / share[-1] * size).astype(int) - 1
    special = np.zeros(size, dtype=bool)
    special[0] = True
    special[ends] = not causal
    return special, np.searchsorted(ends, np.arange(size)).astype(np.int64)


def _stripes(special: NDArray[np.bool_], dice: np.random.Generator) -> Floats:
    """One to four columns of unequal strength: of specials, or of any places in the first half."""
    size = len(special)
    many = int(dice.integers(1, 5 if size >= 20 else 3))
    where = np.flatnonzero(special) if dice.random() < 0.6 else np.arange(1 + size // 2)
    chosen = dice.choice(where, min(many, len(where)), replace=False)
    strength = np.zeros(size)
    strength[chosen] = dice.uniform(0.5, 1, len(chosen))
    return np.tile(strength / strength.sum(), (size, 1))


def _line(size: int, causal: bool, dice: np.random.Generator) -> Floats:
    """A box around a line up to three tokens off the diagonal, up to a twelfth of the map wide."""
    far = 3 if size >= 33 else 2 if size >= 20 else 1
    offset = int(dice.integers(-far, 1 if causal else far + 1))
    reach = int(dice.integers(0, 1 + min(4, size // 24)))
    places = np.arange(size)
    near = np.abs(places - places[:, None] - offset) <= reach
    near[~near.any(1), 0 if offset < 0 else -1] = True
    return near / near.sum(1, keepdims=True)


def _own(segment: NDArray[np.int64]) -> Floats:
    """Each text looks at itself."""
    same = segment[:, None] == segment
    return same / same.sum(1, keepdims=True)
