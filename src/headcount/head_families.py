"""Families of heads: which heads are alike, by how unlike their attention is.

Clark et al., BlackBoxNLP 2019, section 6: Jensen-Shannon divergences between all pairs of heads, a
map of them, and heads of one layer lying together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount.head_clusters import head_clusters
from headcount.head_map import head_map
from headcount.heads import Head, parse_head
from headcount.stats.silhouette import SilhouetteTest, silhouette_test

__all__ = ["Families", "StackPairs", "families_of"]

NEAREST = 6


@dataclass(frozen=True)
class StackPairs:
    """Divergences between the heads of a stack, summed over rows, in nats."""

    heads: tuple[Head, ...]
    js_sum: NDArray[np.float64]
    #: Rows that were compared.
    rows: int


@dataclass(frozen=True)
class Families:
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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays, for `pairs.npz`."""
        kept = {name: getattr(self, name) for name in _ARRAYS}
        return {
            "heads": np.array([str(head) for head in self.heads]),
            "stacks": np.array(self.stacks),
            **kept,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Families:
        """What `pairs.npz` holds."""
        return cls(
            heads=[parse_head(str(name)) for name in arrays["heads"]],
            stacks=[str(name) for name in arrays["stacks"]],
            **dict[str, Any]({name: arrays[name] for name in _ARRAYS}),
        )


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
    found.mds[rows], found.stress[number] = head_map(mean, seed)
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
