"""Drawn patterns with noise: columns, diagonals and blocks of known strength on a grey ground."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headcount.patterns.kinds import PATTERNS

from .store import Kept

Floats = NDArray[np.float64]
_LIKELY = (0.28, 0.17, 0.25, 0.1, 0.2)


def drawn_maps(count: int, seed: int) -> tuple[list[Kept], NDArray[np.int64]]:
    """So many drawn maps with the numbers of their patterns."""
    dice = np.random.default_rng(seed)
    labels = dice.choice(len(PATTERNS), count, p=_LIKELY)
    return [_drawn(PATTERNS[label], dice) for label in labels], labels.astype(np.int64)


def _drawn(pattern: str, dice: np.random.Generator) -> Kept:
    size = int(np.exp(dice.uniform(np.log(6), np.log(128))))
    causal = pattern != "block" and dice.random() < 0.15
    paired = pattern == "block" or (not causal and dice.random() < 0.5 and size > 8)
    special, segment = _places(max(size, 10) if paired else size, paired, causal, dice)
    size = len(special)
    ground = _ground(size, dice)
    shapes = _shapes(pattern, special, segment, dice)
    weights = ground * max(0.02, 1 - sum(share for share, _ in shapes))
    for share, shape in shapes:
        weights = weights + share * shape
    weights = np.tril(weights) if causal else weights
    weights /= weights.sum(1, keepdims=True)
    return Kept(weights.astype(np.float32), special, segment)


def _places(
    size: int, paired: bool, causal: bool, dice: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    special, segment = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64)
    special[-1] = not causal
    special[0] = causal or paired or dice.random() < 0.8
    if paired:
        border = int(dice.uniform(0.25, 0.75) * size)
        special[border], segment[border + 1 :] = True, 1
    return special, segment


def _ground(size: int, dice: np.random.Generator) -> Floats:
    """Grey with spots: from almost even to a few strong cells a row, with some taste for words."""
    rough = dice.uniform(0.1, 1.4)
    words = dice.normal(0, dice.uniform(0, 0.5), size)
    return _rows(np.exp(rough * dice.normal(size=(size, size)) + words))


def _shapes(
    pattern: str, special: NDArray[np.bool_], segment: NDArray[np.int64], dice: np.random.Generator
) -> list[tuple[float, Floats]]:
    """Shares of the weight with what they draw; a faint shape may hide in other patterns."""
    plain, faint = dice.uniform, dice.random() < 0.4
    size = len(special)
    columns, diagonal = _columns(special, dice), _diagonal(size, dice)
    if pattern == "vertical":
        return [(plain(0.28, 0.95), columns), (faint * plain(0, 0.05), diagonal)]
    if pattern == "diagonal":
        return [(plain(0.25, 0.98), diagonal), (faint * plain(0, 0.08), columns)]
    if pattern == "vertical_diagonal":
        first = plain(0.22, 0.75)
        return [(first, columns), ((0.97 - first) * plain(0.25, 1), diagonal)]
    if pattern == "block":
        share = plain(0.35, 0.95)
        rest = [((1 - share) * plain(0, 0.7), columns), ((1 - share) * plain(0, 0.4), diagonal)]
        return [(share, _block(segment, dice)), *(rest if faint else [])]
    return [(faint * plain(0, 0.13), columns), (faint * plain(0, 0.06), diagonal)]


def _columns(special: NDArray[np.bool_], dice: np.random.Generator) -> Floats:
    """A few keys that most queries look at: specials mostly, sometimes others, rarely many."""
    size = len(special)
    places = np.flatnonzero(special)
    if dice.random() < 0.35 or not len(places):
        some = int(dice.integers(1, max(2, min(8, size // 4))))
        places = np.union1d(dice.choice(size, some, replace=False), places[: dice.integers(0, 3)])
    else:
        places = places[dice.random(len(places)) < 0.75] if len(places) > 1 else places
        places = places if len(places) else np.flatnonzero(special)[:1]
    strength = np.zeros((size, size))
    strength[:, places] = dice.uniform(0.3, 1, len(places))
    jitter = np.exp(dice.uniform(0, 0.9) * dice.normal(size=(size, size)))
    return _rows(strength * jitter)


def _diagonal(size: int, dice: np.random.Generator) -> Floats:
    """A line near the diagonal, sharp or blurred, with rows that miss it."""
    offset = int(dice.choice([-2, -1, 0, 1, 2], p=[0.05, 0.3, 0.3, 0.3, 0.05]))
    blur = dice.uniform(0.2, max(0.6, 0.04 * size))
    places = np.arange(size)
    away = (places - places[:, None] - offset) / blur
    near = np.exp(-0.5 * away**2) + 1e-6
    near = near * np.exp(dice.uniform(0, 0.7) * dice.normal(size=near.shape))
    missed = dice.random(size) < dice.uniform(0, 0.3)
    near[missed] = _ground(size, dice)[missed]
    return _rows(near)


def _block(segment: NDArray[np.int64], dice: np.random.Generator) -> Floats:
    same = segment[:, None] == segment
    own = same if dice.random() < 0.85 else ~same
    rough = dice.uniform(0.1, 0.8)
    return _rows(own * np.exp(rough * dice.normal(size=own.shape)) + 1e-9)


def _rows(weights: Floats) -> Floats:
    return weights / weights.sum(1, keepdims=True)
