"""Scores divided by the l2 norm of their layer (Molchanov et al. 2017, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.heads import Head
from headcount.stats.results import Floats

__all__ = ["over_layer_norm"]


def over_layer_norm(heads: Sequence[Head], value: Floats, *bounds: Floats) -> tuple[Floats, ...]:
    """Each head's score over the l2 norm of its layer's scores; bounds over the same norm.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1), Head("enc", 1, 0)]
    >>> over_layer_norm(heads, np.array([3.0, 4.0, 2.0]))[0].tolist()
    [0.6, 0.8, 1.0]
    """
    layers = [(head.stack, head.layer) for head in heads]
    norms = {
        layer: np.linalg.norm(value[[place == layer for place in layers]]) for layer in set(layers)
    }
    # A layer of zeros stays one; Michel et al.'s program adds the same small number.
    norm = np.array([norms[layer] for layer in layers]) + 1e-20
    return tuple(part / norm for part in (value, *bounds))
