"""Drawn patterns with noise: columns, diagonals and blocks of known strength on a grey ground."""

from __future__ import annotations

import numpy as np

from headcount.rooms.patterns.tally import PATTERNS

from .drawn_shapes import Bools, Dice, Floats, Ints, columns, ground, line, places, squares
from .store import Kept

_LIKELY = (0.25, 0.16, 0.21, 0.22, 0.16)
#: Sizes of drawn maps; a picture of a larger one looks the same.
_SIZES = (6, 200)


def drawn_maps(count: int, seed: int) -> tuple[list[Kept], Ints]:
    """So many drawn maps with the numbers of their patterns."""
    dice = np.random.default_rng(seed)
    labels = dice.choice(len(PATTERNS), count, p=_LIKELY)
    return [_drawn(PATTERNS[label], dice) for label in labels], labels.astype(np.int64)


def _drawn(pattern: str, dice: Dice) -> Kept:
    low, high = np.log(_SIZES)
    size = int(np.exp(dice.uniform(low, high)))
    causal = pattern != "block" and dice.random() < 0.15
    parts = 1 if causal else _parts(pattern == "block", size, dice)
    size = max(size, 8) if parts > 1 else size
    special, segment = places(size, parts, causal, dice)
    shapes = _shapes(pattern, special, segment, dice)
    weights = ground(size, dice) * max(0.02, 1 - sum(share for share, _ in shapes))
    for share, shape in shapes:
        weights = weights + share * shape
    weights = np.tril(weights) if causal else weights
    weights /= weights.sum(1, keepdims=True)
    known, marked = dice.random() < 0.7, dice.random() < 0.85
    return Kept(weights.astype(np.float32), special & marked, segment if known else None)


def _parts(block: bool, size: int, dice: Dice) -> int:
    """One text, a pair, or rarely three or four texts."""
    if not block and dice.random() < 0.4:
        return 1
    return int(dice.integers(3, 5)) if size >= 24 and dice.random() < 0.3 else 2


def _shapes(pattern: str, special: Bools, segment: Ints, dice: Dice) -> list[tuple[float, Floats]]:
    """Shares of the weight with what they draw; a faint shape may hide in other patterns."""
    plain, faint = dice.uniform, dice.random() < 0.4
    stripes, diagonal = columns(special, dice), line(len(special), segment, dice)
    paired = bool(segment.any()) and dice.random() < 0.3
    hidden = (paired * plain(0, 0.12), squares(special, segment, dice)) if paired else (0, stripes)
    if pattern == "vertical":
        return [(plain(0.28, 0.95), stripes), (faint * plain(0, 0.05), diagonal), hidden]
    if pattern == "diagonal":
        return [(plain(0.25, 0.98), diagonal), (faint * plain(0, 0.06), stripes)]
    if pattern == "vertical_diagonal":
        first = plain(0.2, 0.7)
        return [(first, stripes), ((0.97 - first) * plain(0.3, 0.95), diagonal)]
    if pattern == "block":
        return _block(special, segment, stripes, diagonal, dice)
    return [(faint * plain(0, 0.13), stripes), (faint * plain(0, 0.06), diagonal), hidden]


def _block(
    special: Bools, segment: Ints, stripes: Floats, diagonal: Floats, dice: Dice
) -> list[tuple[float, Floats]]:
    """Squares alone, or with columns as strong as they are, or with a line inside."""
    share = dice.uniform(0.4, 0.95)
    mixed = [(share, squares(special, segment, dice))]
    if dice.random() < 0.6:
        share = dice.uniform(0.3, 0.7)
        mixed = [(share, mixed[0][1]), ((1 - share) * dice.uniform(0.1, 0.95), stripes)]
    if dice.random() < 0.2:
        mixed.append(((1 - share) * dice.uniform(0, 0.35), diagonal))
    return mixed
