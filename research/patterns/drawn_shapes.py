"""What drawn maps are made of: places, a grey ground, columns, lines and squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Dice = np.random.Generator


def places(size: int, parts: int, causal: bool, dice: Dice) -> tuple[Bools, Ints]:
    """Specials and the number of each token's text: `[CLS] a [SEP] b [SEP]`, or a start alone."""
    special, segment = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64)
    special[-1] = not causal
    special[0] = causal or parts > 1 or dice.random() < 0.8
    shares = np.cumsum(dice.uniform(0.5, 1.5, parts))
    for border in (shares[:-1] / shares[-1] * (size - 2)).astype(int) + 1:
        special[border] = True
        segment[border + 1 :] += 1
    return special, segment


def ground(size: int, dice: Dice) -> Floats:
    """Grey with spots: from almost even to a few strong cells a row, with some taste for words."""
    if dice.random() < 0.1:
        return np.full((size, size), 1 / size)
    rough = dice.uniform(0.05, 1.6)
    words = dice.normal(0, dice.uniform(0, 0.5), size)
    cells = rough * dice.normal(size=(size, size))
    if dice.random() < 0.2:  # neighbours in a row alike, as where words make phrases
        cells = (cells + np.roll(cells, 1, 0) + np.roll(cells, 1, 1)) / 1.7
    return rows(np.exp(cells + words))


def columns(special: Bools, dice: Dice) -> Floats:
    """A few keys that most queries look at: specials mostly, sometimes others, rarely many."""
    size = len(special)
    chosen = np.flatnonzero(special)
    if dice.random() < 0.35 or not len(chosen):
        some = int(dice.integers(1, max(2, min(8, size // 3))))
        chosen = np.union1d(dice.choice(size, some, replace=False), chosen[: dice.integers(0, 3)])
    elif len(chosen) > 1 and dice.random() < 0.6:
        chosen = dice.choice(chosen, int(dice.integers(1, len(chosen))), replace=False)
    strength = np.zeros((size, size))
    strength[:, chosen] = dice.uniform(0.3, 1, len(chosen))
    jitter = np.exp(dice.uniform(0, 0.9) * dice.normal(size=(size, size)))
    return rows(strength * jitter)


def line(size: int, segment: Ints, dice: Dice) -> Floats:
    """A line near the diagonal, sharp or blurred, with rows that miss it, often within a text."""
    far = [-3, -2, -1, 0, 1, 2, 3]
    likely = [0.04, 0.08, 0.25, 0.26, 0.25, 0.08, 0.04]
    offset = int(dice.choice(far, p=likely)) if size >= 16 else int(dice.integers(-1, 2))
    blur = dice.uniform(0.2, max(0.6, 0.045 * size))
    here = np.arange(size)
    near = np.exp(-0.5 * ((here - here[:, None] - offset) / blur) ** 2) + 1e-6
    near = near * np.exp(dice.uniform(0, 0.7) * dice.normal(size=near.shape))
    if dice.random() < 0.5:
        near = near * np.where(segment[:, None] == segment, 1, 0.05)
    missed = dice.random(size) < dice.uniform(0, 0.3)
    near[missed] = ground(size, dice)[missed]
    return rows(near)


def squares(special: Bools, segment: Ints, dice: Dice) -> Floats:
    """Each text looks at itself, rarely at the others: evenly, at some words, or more nearby."""
    same = segment[:, None] == segment
    own = np.where(same if dice.random() < 0.9 else ~same, 1.0, dice.uniform(0, 0.12))
    own = own * np.exp(dice.uniform(0.1, 1.0) * dice.normal(size=own.shape))
    how = dice.random()
    if how < 0.3:
        own = own * np.exp(dice.normal(0, dice.uniform(0.3, 1), len(segment)))
    elif how < 0.6:
        here = np.arange(len(segment))
        length = same.sum(1, keepdims=True)
        away = (here - here[:, None]) / (dice.uniform(0.25, 0.8) * length)
        own = own * np.exp(-0.5 * away**2)
    if dice.random() < 0.4:  # specials look at specials, which draws white lines through squares
        own[special] = 1e-3 + special
    return rows(own + 1e-9)


def rows(weights: Floats) -> Floats:
    """Weights that add up to 1 in each row."""
    return weights / weights.sum(1, keepdims=True)
