"""Families of heads over a corpus: distances between all pairs, a map, clusters, nearest heads.

Families of heads: which heads are alike, by how unlike their attention is.

Clark et al., BlackBoxNLP 2019, section 6: Jensen-Shannon divergences between all pairs of heads, a
map of them, and heads of one layer lying together.

Families among the stages of a story.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.typing import NDArray

from headcount.cli import output, print_rows
from headcount.errors import StatsError
from headcount.models import Subject, check_subject, refuse_nan
from headcount.records import Brief, Head, old_keywords, parse_head, provenance, to_strict
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    figure,
    figures,
    forward_steps,
    printed,
)
from headcount.rooms.families.divergence import Divergence, StackPairs
from headcount.stats import Floats
from headcount.surveys import PassOptions, run_pass, stacks_of
from headcount.text import Long, Ready, is_ready, read_corpus

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
    families = Families(
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
        rows = np.array([row[head] for head in one.heads])
        mean, square = one.js_sum / max(one.rows, 1), np.ix_(rows, rows)
        families.js[square], families.js_sum[square] = mean, one.js_sum
        families.tokens[rows] = one.rows
        families.mds[rows], families.stress[number] = mds_places(mean)
        families.cluster[rows] = head_clusters(mean)
        families.nearest[rows] = _nearest(mean, rows)
        layers = [head.layer for head in one.heads]
        if 2 <= len(set(layers)) < len(layers):  # else layers have one head each, or are one
            value, *ends, p = silhouette_test(mean, layers, seed=seed)
            families.silhouette[number], families.silhouette_p[number] = value, p
            families.silhouette_shuffled[number] = ends
    return families


def _nearest(mean: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.int32]:
    away = mean.copy()
    np.fill_diagonal(away, np.inf)
    kept = min(NEAREST, len(rows) - 1)
    order = np.argsort(away, axis=1, kind="stable")[:, :kept]
    nearest = np.full((len(rows), NEAREST), -1, np.int32)
    nearest[:, :kept] = rows[order]
    return nearest


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
    values = np.concatenate([_silhouettes(apart, part) for part in np.array_split(shuffled, 20)])
    value = mean_silhouette(apart, numbers)
    low, high = np.quantile(values, [0.025, 0.975])
    p = (1 + int((values >= value - 1e-12).sum())) / (draws + 1)
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


# --- Families of heads over a corpus ------------------------------------------------------------


@old_keywords()
def families(
    subject: Subject,
    corpus: Any,
    *,
    convention: str = "headcount",
    stacks: Collection[str] | None = None,
    batch_size: int = 8,
    max_length: int | None = None,
    long: Long = "window",
    limit: int | None = None,
    seed: int | None = None,
) -> Families:
    """Which heads of each stack are alike: Jensen-Shannon divergences of their attention.

    Clark et al. 2019, section 6. `found.js` is the mean over tokens and `found.js_sum` the sum;
    `found.near("enc.5.3")` gives the nearest heads, `found.silhouette` whether heads of a layer lie
    together. One batch's maps of all layers are in memory at a time, whatever the corpus.

    >>> from headcount.models.loading import load
    >>> families(load("minilm"), ["The cat sat."]).near("enc.0.0")    # doctest: +SKIP
    """
    check_subject(subject, "families(subject, corpus)")
    inputs = PassOptions(stacks_of(subject, stacks), batch_size, max_length, long)
    source = (
        Ready(corpus, subject.anatomy.stacks)
        if is_ready(corpus)
        else read_corpus(corpus, limit=limit, seed=seed)
    )
    tally = Divergence(convention)
    report = run_pass(subject, source, [tally], inputs, "Comparing heads")
    about = provenance.collect(
        model=subject.name,
        weights=subject.weights_hash,
        corpus=source.name,
        data=source.hash,
        counts=vars(report) | {"tokens": dict(report.tokens)},
        convention=convention,
        settings=inputs.to_dict(),
        seed=seed,
    )
    return families_of_tally(subject, tally, seed=seed or 0, about=about)


def families_of_tally(
    subject: Subject, tally: Divergence, *, seed: int = 0, about: dict[str, Any] | None = None
) -> Families:
    """Families from what a tally summed up, in the order of the subject's heads."""
    pairs = tally.pairs()
    for stack, one in pairs.items():
        if np.isnan(one.js_sum).any():
            refuse_nan(subject, stack)
    return families_of(subject.heads, pairs, seed=seed, provenance=about)


# --- Families of heads for a terminal -----------------------------------------------------------


def family_sentences(families: Families) -> list[str]:
    """A sentence or two for each stack: clusters, and whether heads of one layer lie together."""
    return [_sentence(families, number, stack) for number, stack in enumerate(families.stacks)]


def _sentence(families: Families, number: int, stack: str) -> str:
    rows = [place for place, head in enumerate(families.heads) if head.stack == stack]
    clusters = families.count(stack)
    groups = (
        f"{clusters} clusters"
        if clusters > 1
        else "no clear clusters (mean silhouette below 0.25 however they are cut)"
    )
    words = (
        f"{stack}: {len(rows)} heads in {groups}; stress of the map {families.stress[number]:.2f}."
    )
    value, p = families.silhouette[number], families.silhouette_p[number]
    if np.isnan(value):
        return words
    low, high = families.silhouette_shuffled[number]
    return (
        f"{words} Heads of a layer: silhouette {value:+.3f}, shuffled {low:+.3f} to {high:+.3f}, "
        f"p {'=' if p > 0.0005 else '<'} {max(p, 0.0005):.2g}."
    )


def nearest_pairs(families: Families, n: int = 10) -> list[tuple[Head, Head, str, str]]:
    """The pairs of heads that are most alike, of each the divergence and the clusters."""
    apart = np.where(np.tri(len(families.heads), dtype=bool), np.nan, families.js).ravel()
    rows = []
    for place in np.argsort(apart, kind="stable")[: min(n, int(np.isfinite(apart).sum()))]:
        a, b = divmod(int(place), len(families.heads))
        clusters = f"{families.cluster[a]}, {families.cluster[b]}"
        rows.append((families.heads[a], families.heads[b], f"{apart[place]:.4f}", clusters))
    return rows


#: Texts that settle which heads are alike.
_TEXTS = 96


def families_stage(context: StoryContext) -> StoryStage:
    """Divergences between all heads of a stack, a map of them, clusters and nearest heads."""
    texts = context.some_texts(_TEXTS)

    def work() -> list[str]:
        kin = families(
            context.subject, texts, batch_size=min(8, context.batch_size), seed=context.seed
        )
        context.run.write_arrays("pairs", kin.arrays())
        return []

    settings = {"texts": texts.hash, "seed": context.seed, "convention": "headcount"}
    title = "Which heads are alike"
    return StoryStage(
        "families", title, settings, work, runs=forward_steps(context, 4.0 * len(texts))
    )


STAGE = StageMaker(families_stage, after="exhibits")


# --- On the page ----------------------------------------------------------------------------------


def pair_part(source: Source) -> dict[str, Any] | None:
    """The map of heads, its stress, and for each head its nearest with their distance."""
    pairs = source.pairs
    if "mds" not in pairs or "heads" not in pairs:
        return None
    places = source.places
    rows = {
        places[head]: row
        for row, name in enumerate(pairs["heads"].tolist())
        if (head := parse_head(str(name))) in places
    }
    numbers = {row: place for place, row in rows.items()}
    at = [rows.get(place) for place in range(len(places))]
    x, y = (
        figures([np.nan if row is None else pairs["mds"][row, axis] for row in at], 3)
        for axis in (0, 1)
    )
    near = [
        [
            [numbers[other], figure(pairs["js"][row, other], 3)]
            for other in ([] if row is None else pairs["nearest"][row].tolist())
            if other in numbers
        ]
        for row in at
    ]
    stacks = enumerate(pairs.get("stacks", np.array([])).tolist())
    notes = {str(stack): _map_note(pairs, row) for row, stack in stacks}
    return {"x": x, "y": y, "near": near, "notes": notes}


def _map_note(pairs: dict[str, np.ndarray], row: int) -> str:
    """What a stack's map is, how far it may be trusted, and whether layers hang together."""
    words = ["Near means alike: Jensen-Shannon distance of maps (Clark et al. 2019, figure 6)."]
    if row < len(pairs.get("tokens", [])):
        words.append(f"Over {int(pairs['tokens'][row]):,} tokens.")
    stress = pairs.get("stress", np.array([]))[row : row + 1]
    for value in stress[np.isfinite(stress)]:
        words.append(f"Stress {value:.2f}: read neighbourhoods, not exact distances.")
    if "silhouette_shuffled" in pairs and np.isfinite(pairs["silhouette"][row]):
        found, (low, high) = pairs["silhouette"][row], pairs["silhouette_shuffled"][row]
        alike = "more alike than chance" if found > high else "no more alike than chance"
        values = f"silhouette {printed(found)}, shuffled {printed(low)} to {printed(high)}"
        words.append(f"Heads of a layer are {alike} ({values}).")
    return " ".join(words)


# --- In the terminal: survey --show families ------------------------------------------------------


def families_json(families: Families) -> dict[str, Any]:
    """The figures of each stack, and every head's cluster, place and nearest heads."""
    stacks = {
        stack: {
            "silhouette": float(families.silhouette[number]),
            "silhouette_shuffled": families.silhouette_shuffled[number].tolist(),
            "p": float(families.silhouette_p[number]),
            "stress": float(families.stress[number]),
        }
        for number, stack in enumerate(families.stacks)
    }
    heads = {
        str(head): {
            "cluster": int(families.cluster[place]),
            "place": families.mds[place].tolist(),
            "nearest": {str(other): js for other, js in families.near(head)},
        }
        for place, head in enumerate(families.heads)
    }
    return {"families": to_strict({"stacks": stacks, "heads": heads})}


def print_families(families: Families) -> None:
    """The pairs most alike, and a sentence for each stack."""
    output().print()
    titles = ("heads most alike", "", "JS (nats a token)", "clusters")
    print_rows(titles, nearest_pairs(families), ["JS (nats a token)"])
    for line in family_sentences(families):
        output().print(line)
