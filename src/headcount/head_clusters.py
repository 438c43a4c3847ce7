"""Groups of heads that lie together: hierarchical clustering, cut where it is clearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headcount.stats.silhouette import mean_silhouette

__all__ = ["head_clusters"]

#: Below this mean silhouette there is no structure to speak of (Kaufman and Rousseeuw 1990, p. 88).
CLEAR = 0.25
MOST = 12


def head_clusters(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cluster of each head, numbered from 0 in the order of the heads.

    Average linkage, cut into as many clusters as give the highest mean silhouette, from 2 to 12;
    all heads are one cluster where even that is below 0.25.

    >>> near = np.abs(np.subtract.outer([0, 1, 2, 50, 51], [0, 1, 2, 50, 51])).astype(float)
    >>> head_clusters(near).tolist()
    [0, 0, 0, 1, 1]
    """
    one = np.zeros(len(distances), dtype=np.int64)
    if len(distances) < 3:
        return one
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(distances, checks=False), method="average")
    best, clearest = one, CLEAR
    for count in range(2, min(MOST, len(distances) - 1) + 1):
        cut = fcluster(tree, count, criterion="maxclust")
        if not 2 <= len(np.unique(cut)) < len(cut):
            continue  # ties can make fewer clusters than were asked for
        clear = mean_silhouette(distances, cut)
        if clear > clearest + 1e-9:
            best, clearest = _numbered(cut), clear
    return best


def _numbered(cut: NDArray[np.int32]) -> NDArray[np.int64]:
    order = {name: place for place, name in enumerate(dict.fromkeys(cut.tolist()))}
    return np.array([order[name] for name in cut.tolist()], dtype=np.int64)
