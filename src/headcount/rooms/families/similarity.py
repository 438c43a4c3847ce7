"""Families of heads: which heads are alike, by how unlike their attention is.

Clark et al., BlackBoxNLP 2019, section 6: Jensen-Shannon divergences between all pairs of heads, a
map of them, and heads of one layer lying together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.typing import NDArray

from headcount.errors import StatsError
from headcount.records import Brief, Head, parse_head
from headcount.stats import Floats

# --- Groups of heads that lie together ----------------------------------------------------------

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
            order = {name: place for place, name in enumerate(dict.fromkeys(cut.tolist()))}
            best, clearest = np.array([order[name] for name in cut.tolist()], dtype=np.int64), clear
    return best


# --- Heads on a plane ---------------------------------------------------------------------------
# Clark et al., BlackBoxNLP 2019, figure 6. From the places of classical scaling (Torgerson 1952)
# one run of SMACOF ends where five random starts do, in a twentieth of the time.

Array = NDArray[np.float64]


def mds_places(distances: Array) -> tuple[Array, float]:
    """Places `[head, 2]` whose distances are close to those given, and Kruskal's stress.

    The stress is the root of the squared misfit's share of the squared distances. Of the turned
    and mirrored maps that fit as well, the one with the largest spread from left to right is kept.

    >>> places, stress = mds_places(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> places.shape, stress < 0.001
    ((3, 2), True)
    """
    if len(distances) < 2 or not distances.any():
        return np.zeros((len(distances), 2)), 0.0
    scale = float(distances.mean())
    places = _scaled(distances / scale) * scale
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return _turned(places), float(np.sqrt(((apart - distances) ** 2).sum() / (distances**2).sum()))


def _scaled(distances: Array) -> Array:
    """Metric scaling to two dimensions, begun by classical scaling."""
    from sklearn.manifold import smacof

    size = len(distances)
    squares = distances**2
    centred = squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()
    values, axes = np.linalg.eigh(-0.5 * centred)
    start = np.zeros((size, 2))
    start[:, : min(size, 2)] = (axes * np.sqrt(values.clip(min=0)))[:, ::-1][:, :2]
    places, _ = smacof(
        distances, init=start, n_init=1, max_iter=1000, eps=1e-6, normalized_stress=False
    )
    return np.asarray(places, dtype=np.float64)


def _turned(places: Array) -> Array:
    """Centred, with the main axis from left to right, and the first head to the right and up."""
    centred = places - places.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    return turned * np.where(turned[0] < 0, -1.0, 1.0)


# --- Families of heads --------------------------------------------------------------------------

NEAREST = 6


@dataclass(frozen=True)
class StackPairs:
    """Divergences between the heads of a stack, summed over rows, in nats."""

    heads: tuple[Head, ...]
    js_sum: NDArray[np.float64]
    #: Rows that were compared.
    rows: int


@dataclass(frozen=True, repr=False)
class Families(Brief):
    """What is known of pairs of heads; NaN between heads that cannot be compared."""

    heads: list[Head]
    #: Divergence of two heads, mean over tokens, in nats: `[head, head]`.
    js: NDArray[np.float32]
    #: The same summed over the tokens of all texts, as the authors' program has it.
    js_sum: NDArray[np.float64]
    tokens: NDArray[np.int64]
    #: A place for each head, stack by stack: `[head, 2]`.
    mds: NDArray[np.float64]
    cluster: NDArray[np.int64]
    #: The rows of the nearest heads, nearest first, -1 where there are no more: `[head, 6]`.
    nearest: NDArray[np.int32]
    stacks: list[str]
    stress: NDArray[np.float64]
    #: Of heads that share a layer: mean, and the middle 95% and p of layers shuffled.
    silhouette: NDArray[np.float64]
    silhouette_shuffled: NDArray[np.float64]
    silhouette_p: NDArray[np.float64]
    provenance: dict[str, Any] = field(default_factory=dict, compare=False)

    def near(self, head: str | Head, n: int = NEAREST) -> list[tuple[Head, float]]:
        """The heads nearest to a head, with their distances."""
        row = self.heads.index(parse_head(head))
        places = [place for place in self.nearest[row, :n].tolist() if place >= 0]
        return [(self.heads[place], float(self.js[row, place])) for place in places]

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """The clusters of each stack, and the nearest head of each."""
        near = {str(head): self.near(head, 1) for head in self.heads}
        rows = {h: (str(n[0][0]), n[0][1]) if n else (None, None) for h, n in near.items()}
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=["nearest", "JS (nats)"])
        frame["cluster"] = self.cluster
        sizes = [f"{stack} {self.count(stack)}" for stack in self.stacks]
        words = f"Families({len(self.heads)} heads; clusters: {', '.join(sizes)})"
        return words, frame.sort_values("JS (nats)", kind="stable")

    def count(self, stack: str) -> int:
        """How many clusters the heads of a stack form."""
        rows = [place for place, head in enumerate(self.heads) if head.stack == stack]
        return len(np.unique(self.cluster[rows]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays, for `pairs.npz`."""
        kept = {name: getattr(self, name) for name in _ARRAYS}
        return {
            "heads": np.array([str(head) for head in self.heads]),
            "stacks": np.array(self.stacks),
            **kept,
        }


_ARRAYS = (
    "js", "js_sum", "tokens", "mds", "cluster", "nearest", "stress", "silhouette",
    "silhouette_shuffled", "silhouette_p",
)  # fmt: skip


def families_of(
    heads: Sequence[Head],
    pairs: Mapping[str, StackPairs],
    *,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> Families:
    """Maps, clusters and nearest heads of every stack, put together in the order of `heads`."""
    heads, size = list(heads), len(heads)
    row = {head: place for place, head in enumerate(heads)}
    found = Families(
        heads=heads,
        js=np.full((size, size), np.nan, np.float32),
        js_sum=np.full((size, size), np.nan),
        tokens=np.zeros(size, np.int64),
        mds=np.full((size, 2), np.nan),
        cluster=np.full(size, -1, np.int64),
        nearest=np.full((size, NEAREST), -1, np.int32),
        stacks=list(pairs),
        stress=np.zeros(len(pairs)),
        silhouette=np.full(len(pairs), np.nan),
        silhouette_shuffled=np.full((len(pairs), 2), np.nan),
        silhouette_p=np.full(len(pairs), np.nan),
        provenance=dict(provenance or {}),
    )
    for number, one in enumerate(pairs.values()):
        _fill(found, number, np.array([row[head] for head in one.heads]), one, seed)
    return found


def _fill(
    found: Families, number: int, rows: NDArray[np.intp], pairs: StackPairs, seed: int
) -> None:
    """Put one stack's figures where its heads are."""
    mean = pairs.js_sum / max(pairs.rows, 1)
    square = np.ix_(rows, rows)
    found.js[square], found.js_sum[square] = mean, pairs.js_sum
    found.tokens[rows] = pairs.rows
    found.mds[rows], found.stress[number] = mds_places(mean)
    found.cluster[rows] = head_clusters(mean)
    found.nearest[rows] = _nearest(mean, rows)
    tested = _same_layer(mean, pairs.heads, seed)
    if tested is not None:
        found.silhouette[number], found.silhouette_p[number] = tested.value, tested.p
        found.silhouette_shuffled[number] = tested.low, tested.high


def _nearest(mean: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.int32]:
    away = mean.copy()
    np.fill_diagonal(away, np.inf)
    kept = min(NEAREST, len(rows) - 1)
    order = np.argsort(away, axis=1, kind="stable")[:, :kept]
    told = np.full((len(rows), NEAREST), -1, np.int32)
    told[:, :kept] = rows[order]
    return told


def _same_layer(
    mean: NDArray[np.float64], heads: Sequence[Head], seed: int
) -> SilhouetteTest | None:
    """Whether heads of a layer lie together; None where layers have one head each, or are one."""
    layers = [head.layer for head in heads]
    if not 2 <= len(set(layers)) < len(layers):
        return None
    return silhouette_test(mean, layers, seed=seed)


# --- Whether things that share a label lie together: the silhouette (Rousseeuw 1987) --------------


class SilhouetteTest(NamedTuple):
    """The mean silhouette, the middle 95% of what shuffled labels give, and how many give more."""

    value: float
    low: float
    high: float
    p: float


def mean_silhouette(distances: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Mean of (b - a) / max(a, b): a is the mean distance to one's own, b to the nearest others.

    Rousseeuw 1987. From -1 to 1; something alone under its label counts as 0.

    >>> apart = [[0, 1, 9, 9], [1, 0, 9, 9], [9, 9, 0, 1], [9, 9, 1, 0]]
    >>> round(mean_silhouette(apart, [0, 0, 1, 1]), 3)
    0.889
    """
    numbers = _numbers(labels)
    return float(_silhouettes(np.asarray(distances, np.float64), numbers[None])[0])


def silhouette_test(
    distances: npt.ArrayLike, labels: npt.ArrayLike, *, draws: int = 2000, seed: int = 0
) -> SilhouetteTest:
    """The mean silhouette beside that of labels shuffled at random; p is (b+1)/(draws+1).

    >>> apart = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    >>> silhouette_test(apart, np.arange(12) // 4).p < 0.01
    True
    """
    apart, numbers = np.asarray(distances, np.float64), _numbers(labels)
    if apart.shape != (len(numbers), len(numbers)):
        raise StatsError(
            f"The distances have the shape {apart.shape} and there are {len(numbers)} labels; "
            "give a square of distances with one label a row."
        )
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(numbers, (draws, 1)), axis=1)
    found = np.concatenate([_silhouettes(apart, part) for part in np.array_split(shuffled, 20)])
    value = mean_silhouette(apart, numbers)
    low, high = np.quantile(found, [0.025, 0.975])
    p = (1 + int((found >= value - 1e-12).sum())) / (draws + 1)
    return SilhouetteTest(value, float(low), float(high), p)


def _numbers(labels: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Labels as numbers from 0; one label alone has no others to compare with."""
    kinds, numbers = np.unique(np.asarray(labels), return_inverse=True)
    if not 2 <= len(kinds) < len(numbers):
        raise StatsError(
            f"{len(numbers)} things have {len(kinds)} different labels; a silhouette needs at "
            "least two labels, one of them shared."
        )
    return numbers


def _silhouettes(distances: Floats, labels: npt.NDArray[np.intp]) -> Floats:
    """The mean silhouette of each row of labels `[draw, thing]`."""
    member = (labels[..., None] == np.arange(labels.max() + 1)).astype(np.float64)
    count = member.sum(1)[:, None, :]
    sums = distances @ member
    own = (sums * member).sum(-1) / np.maximum((count * member).sum(-1) - 1, 1)
    others = np.where(member > 0, np.inf, sums / np.maximum(count, 1)).min(-1)
    alone = (count * member).sum(-1) == 1
    larger = np.maximum(own, others)
    each = np.where(alone | (larger == 0), 0.0, (others - own) / np.where(larger > 0, larger, 1))
    mean: Floats = each.mean(-1)
    return mean
