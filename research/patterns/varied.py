"""A map a little changed, with the same pattern: fewer tokens, other noise, texts not told."""

from __future__ import annotations

import numpy as np

from .store import Kept


def varied(one: Kept, dice: np.random.Generator) -> Kept:
    """Leave out up to a quarter of the words, shake the weights, sometimes hide the texts."""
    size = len(one.weights)
    least = 0.75 if size > 12 else 0.9
    stays = (dice.random(size) < dice.uniform(least, 1)) | one.special
    stays = stays if stays.sum() >= 6 else np.ones(size, dtype=bool)
    weights = one.weights[stays][:, stays].astype(np.float64)
    weights = weights * np.exp(dice.uniform(0, 0.4) * dice.normal(size=weights.shape)) + 1e-9
    weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    hidden = one.segment is None or dice.random() < 0.15
    return Kept(weights, one.special[stays], None if hidden else one.segment[stays])
