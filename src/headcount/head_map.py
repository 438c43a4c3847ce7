"""Heads on a plane: metric multidimensional scaling of the distances between them.

Clark et al., BlackBoxNLP 2019, figure 6: two dimensions, five starts, at most 1,000 steps.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["head_map"]

Array = NDArray[np.float64]


def head_map(distances: Array, seed: int = 0) -> tuple[Array, float]:
    """Places `[head, 2]` whose distances are close to those given, and Kruskal's stress.

    The stress is the root of the squared misfit's share of the squared distances. Of the turned
    and mirrored maps that fit as well, the one whose spread is largest from left to right is told.

    >>> places, stress = head_map(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> places.shape, stress < 0.001
    ((3, 2), True)
    """
    if len(distances) < 2 or not distances.any():
        return np.zeros((len(distances), 2)), 0.0
    scale = float(distances.mean())
    places = _scaling(seed).fit_transform(distances / scale) * scale
    return _turned(places), _stress(places, distances)


def _scaling(seed: int) -> Any:
    """scikit-learn's estimator; 1.9 gave two of its arguments other names."""
    from sklearn.manifold import MDS

    known = signature(MDS).parameters
    kind = (
        {"metric_mds": True, "metric": "precomputed"}
        if "metric_mds" in known
        else {"metric": True, "dissimilarity": "precomputed"}
    )
    start = {"init": "random"} if "init" in known else {}
    plain = {"normalized_stress": False} if "normalized_stress" in known else {}
    return MDS(
        n_components=2, n_init=5, max_iter=1000, eps=1e-10, random_state=seed,
        **kind, **start, **plain,
    )  # fmt: skip


def _turned(places: Array) -> Array:
    """Centred, with the main axis from left to right, and the first head to the right and up."""
    centred = places - places.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    return turned * np.where(turned[0] < 0, -1.0, 1.0)


def _stress(places: Array, distances: Array) -> float:
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return float(np.sqrt(((apart - distances) ** 2).sum() / (distances**2).sum()))
