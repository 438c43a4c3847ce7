"""Padded batches, the probes of Clark et al. 2019, section 5, that score them, and their training.

Equation 1 weighs each head and direction, equation 2 lets words decide the weights; the baseline
knows distances and words only. All are trained by cross-entropy over the candidates of a word.

The structural probe: are distances between a model's hidden states those of a tree?

Hewitt & Manning, NAACL 2019: a linear map B of low rank such that ``|B(h_i - h_j)|^2`` is the
number of arcs between the words i and j, trained by the absolute difference. The minimum spanning
tree of the distances is undirected: its figure is UUAS, the share of arcs that are in it. Clark et
al. 2019 put it beside their probes of attention (Table 3).
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils.rnn import pad_sequence

from headcount.errors import ModelError, UsageError
from headcount.models import Subject, capture_hooks_off, enough_memory, eval_mode, refuse_nan
from headcount.records import working
from headcount.rooms.probing.data import (
    END,
    EXTRA,
    START,
    STRUCTURAL,
    UNKNOWN,
    Gathered,
    ProbeExample,
    Room,
    Settings,
    probed_stack,
)
from headcount.surveys import PassOptions, batches_of
from headcount.text import Corpus

# --- Padded batches of examples -----------------------------------------------------------------

#: So many batches are drawn together and sorted by length: little padding, and still at random.
_POOL = 32


@dataclass(frozen=True)
class ProbeBatch:
    """Padded examples; n is the most words that one of them has."""

    #: Gold heads ``[batch, n]``, `UNKNOWN` on padding.
    heads: Tensor
    #: Bool ``[batch, n]``.
    scored: Tensor
    #: Rows of the table of vectors ``[batch, n]``, 0 on padding.
    words: Tensor
    #: Numbers of words ``[batch]``.
    sizes: Tensor
    #: ``[batch, head, 2 + n, 2 + n]`` in float32, 0 on padding.
    maps: Tensor | None

    @property
    def known(self) -> Tensor:
        """Bool ``[batch, n]``: words that have a gold head."""
        return self.heads != UNKNOWN

    @property
    def candidates(self) -> Tensor:
        """Bool ``[batch, 1 + n]``: ROOT and the words that are there."""
        places = torch.arange(self.heads.shape[1] + 1, device=self.sizes.device)
        return places <= self.sizes[:, None]


def batch_of(examples: Sequence[ProbeExample], device: torch.device | str = "cpu") -> ProbeBatch:
    """Pad examples to one size and put them on a device."""
    most = max(len(example) for example in examples)

    def padded(name: str, fill: float = 0) -> Tensor:
        rows = [getattr(one, name) for one in examples]
        return pad_sequence(rows, batch_first=True, padding_value=fill).to(device)

    maps, first = None, examples[0].maps
    if first is not None:
        width = most + first.shape[-1] - len(examples[0])
        maps = torch.zeros(len(examples), len(first), width, width, dtype=first.dtype)
        for row, example in zip(maps, examples, strict=True):
            assert example.maps is not None
            size = example.maps.shape[-1]
            row[:, :size, :size] = example.maps
        maps = maps.to(device).float()
    return ProbeBatch(
        heads=padded("heads", UNKNOWN),
        scored=padded("scored"),
        words=padded("words"),
        sizes=torch.tensor([len(one) for one in examples], device=device),
        maps=maps,
    )


def example_batches(
    examples: Sequence[ProbeExample], size: int
) -> Iterator[Sequence[ProbeExample]]:
    """Examples as they come, N at a time."""
    return (examples[begin : begin + size] for begin in range(0, len(examples), size))


def shuffled(
    examples: Sequence[ProbeExample], size: int, seed: int
) -> Iterator[Sequence[ProbeExample]]:
    """Examples in random order, those of like length together."""
    draw = random.Random(seed)
    order = draw.sample(list(examples), len(examples))
    groups = [
        group
        for pool in example_batches(order, size * _POOL)
        for group in example_batches(sorted(pool, key=len), size)
    ]
    draw.shuffle(groups)
    return iter(groups)


# --- What all probes have in common -------------------------------------------------------------


class Scorer(nn.Module):
    """Scores ``[batch, word, candidate]``; candidate 0 is ROOT, candidate j word j - 1."""

    @abstractmethod
    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores, also of candidates that are only padding."""

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each attention head's part of the scores, ``[batch, head, word, candidate]``."""
        raise UsageError("This probe looks at no attention, so no head has a part in its scores.")

    def begin(self, initial: Mapping[str, Any] | None) -> None:
        """Put given numbers in place of those that were drawn."""
        own = dict(self.named_parameters())
        for name, values in (initial or {}).items():
            if name not in own:
                raise UsageError(f"This probe has no weight '{name}'; it has {', '.join(own)}.")
            given = torch.as_tensor(values, dtype=torch.float32)
            if given.shape != own[name].shape:
                raise UsageError(
                    f"The initial {name} has the shape {tuple(given.shape)}; it must be "
                    f"{tuple(own[name].shape)}."
                )
            own[name].data.copy_(given)


def with_root(maps: Tensor, root: Tensor) -> Tensor:
    """Maps ``[..., 2 + n, 2 + n]`` as ``[..., word, candidate]``.

    ROOT's column is what a word gives to start and to end, times two learned numbers.
    """
    rows = maps[..., EXTRA:, :]
    column = root[0] * rows[..., START] + root[1] * rows[..., END]
    return torch.cat([column[..., None], rows[..., EXTRA:]], dim=-1)


def glorot(shape: tuple[int, ...], draw: torch.Generator, fan: int | None = None) -> nn.Parameter:
    """Uniform numbers within the square root of 3 / mean fan, TensorFlow's usual beginning.

    A vector's fan is its length, unless it is given (Glorot & Bengio 2010, equation 16).

    >>> bool(glorot((288,), torch.Generator()).abs().max() <= (3 / 288) ** 0.5)
    True
    """
    ends = (shape[0], shape[-1]) if fan is None else (fan, fan)
    limit = (6 / sum(ends)) ** 0.5
    return nn.Parameter((2 * torch.rand(shape, generator=draw) - 1) * limit)


# --- The attention-only probe: one weight for each head and direction ---------------------------
# Clark et al. 2019, section 5, equation 1: score(i, j) = sum over heads k of w_k a_ij + u_k a_ji.


class AttentionScores(Scorer):
    """`weights` has w of every head, then u; `root` what start and end count for ROOT.

    >>> scorer = AttentionScores(heads=72)
    >>> {name: tuple(weight.shape) for name, weight in scorer.named_parameters()}
    {'weights': (144,), 'root': (2,)}
    """

    def __init__(self, heads: int, seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.weights = glorot((2 * heads,), draw)
        self.root = glorot((2,), draw, fan=1)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores; heads are summed before ROOT's column is made, which is the same."""
        assert batch.maps is not None
        there, back = self.weights.chunk(2)
        both = torch.einsum("bkij,ck->bcij", batch.maps, torch.stack([there, back]))
        return with_root(both[:, 0] + both[:, 1].transpose(1, 2), self.root)

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each head's part of the scores."""
        assert batch.maps is not None
        there, back = self.weights.chunk(2)
        forth = with_root(batch.maps, self.root) * there[:, None, None]
        return forth + with_root(batch.maps.transpose(2, 3), self.root) * back[:, None, None]


# --- The attention-and-words probe --------------------------------------------------------------
# Clark et al. 2019, section 5, equation 2: the weights of the heads are a linear function of the
# vectors of dependent and candidate, [v_i; v_j]. That splits into a part for each word, which is
# computed once for it.


class WordScores(Scorer):
    """`kernel` ``[2 * width, 2 * heads]`` and `bias` make weights of words; `root` as ever.

    `vectors` ``[row, width]`` are frozen. `shifted` puts the words of every candidate one place
    too early, as the authors' program does (its issue 17).
    """

    vectors: Tensor

    def __init__(self, heads: int, vectors: Tensor, seed: int = 0, shifted: bool = False) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.kernel = glorot((2 * vectors.shape[1], 2 * heads), draw)
        self.bias = nn.Parameter(torch.zeros(2 * heads))
        self.root = glorot((2,), draw, fan=1)
        self.shifted = shifted
        self.register_buffer("vectors", vectors.float(), persistent=False)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores: two products for each place, and no weight for any pair is ever written."""
        assert batch.maps is not None
        dependent, candidate, counts = self._weights(batch)
        (own, own_back), (other, other_back) = dependent.chunk(2, -1), candidate.chunk(2, -1)
        by_row = torch.stack([own, other_back], dim=2) @ batch.maps.transpose(1, 2)
        by_column = torch.stack([own_back, other], dim=2) @ batch.maps.permute(0, 3, 1, 2)
        of_dependent = by_row[:, :, 0] + by_column[:, :, 0]
        of_candidate = by_row[:, :, 1] + by_column[:, :, 1]
        both = of_dependent * counts[:, None] + of_candidate.transpose(1, 2)
        return with_root(both, self.root)

    def contributions(self, batch: ProbeBatch) -> Tensor:
        """Each head's part of the scores, both directions together."""
        assert batch.maps is not None
        dependent, candidate, counts = self._weights(batch)
        weights = dependent[:, :, None] * counts[:, None, :, None] + candidate[:, None]
        forth, back = weights.permute(0, 3, 1, 2).chunk(2, dim=1)
        both = batch.maps * forth + batch.maps.transpose(2, 3) * back
        return with_root(both, self.root)

    def _weights(self, batch: ProbeBatch) -> tuple[Tensor, Tensor, Tensor]:
        """What the maps count by dependent and by candidate, ``[batch, place, 2 * head]`` each.

        Last, ``[batch, place]``: whether the dependent counts at this candidate. Places are
        start, end, the words; at the first two the candidate is ROOT, and there is no dependent.
        """
        words = self.vectors[batch.words]
        candidates, counts = candidate_vectors(words, batch.sizes, self.shifted)
        by_dependent, by_candidate = self.kernel.chunk(2)
        dependent = pad(words @ by_dependent, (0, 0, EXTRA, 0))
        candidate = candidates @ by_candidate + self.bias
        return dependent, _twice_root(candidate), _twice_root(counts)


def _twice_root(of_candidates: Tensor) -> Tensor:
    """Candidates as places: ROOT is start as well as end."""
    return torch.cat([of_candidates[:, :1], of_candidates], dim=1)


def candidate_vectors(words: Tensor, sizes: Tensor, shifted: bool) -> tuple[Tensor, Tensor]:
    """The vector of each candidate, ``[batch, 1 + n, width]``, and where the dependent counts.

    ROOT has a vector of zeros, in front. Shifted, it stands behind the last word instead, and the
    dependent's vector is zero there as well.

    >>> words = torch.tensor([[[1.0], [2.0]]])
    >>> candidate_vectors(words, torch.tensor([2]), shifted=False)[0].flatten().tolist()
    [0.0, 1.0, 2.0]
    >>> [part.flatten().tolist() for part in candidate_vectors(words, torch.tensor([2]), True)]
    [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]]
    """
    nothing = torch.zeros_like(words[:, :1])
    counts = torch.ones(words.shape[0], words.shape[1] + 1, device=words.device)
    if not shifted:
        return torch.cat([nothing, words], dim=1), counts
    counts[torch.arange(len(sizes), device=words.device), sizes] = 0
    return torch.cat([words, nothing], dim=1), counts


# --- The distances-and-words baseline -----------------------------------------------------------
# Clark et al. 2019, section 5: a hidden layer of 256 tanh units over 8 features of the distance and
# the vectors of both words.

#: Features of the distance, after one map of zeros that the authors' program has in their place.
FEATURES = 8
_OFFSETS = (0, -1, 1, -2, 2)


class DistanceScores(Scorer):
    """`kernel` ``[1 + 8 + 2 * width, hidden]``: an unused row, distances, dependent, candidate."""

    vectors: Tensor

    def __init__(
        self, vectors: Tensor, seed: int = 0, shifted: bool = False, hidden: int = 256
    ) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.kernel = glorot((1 + FEATURES + 2 * vectors.shape[1], hidden), draw)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.output = glorot((hidden, 1), draw)
        self.output_bias = nn.Parameter(torch.zeros(1))
        self.shifted = shifted
        self.register_buffer("vectors", vectors.float(), persistent=False)

    def forward(self, batch: ProbeBatch) -> Tensor:
        """The scores; what depends on one word is computed once for it."""
        width = self.vectors.shape[1]
        by_place, by_dependent, by_candidate = self.kernel[1:].split([FEATURES, width, width])
        words = self.vectors[batch.words]
        candidates, counts = candidate_vectors(words, batch.sizes, self.shifted)
        hidden = distances(batch.sizes, words.shape[1]) @ by_place
        hidden = hidden + (words @ by_dependent)[:, :, None] * counts[:, None, :, None]
        hidden = hidden + (candidates @ by_candidate + self.bias)[:, None]
        return (hidden.tanh() @ self.output)[..., 0] + self.output_bias


def distances(sizes: Tensor, most: int) -> Tensor:
    """Features ``[batch, word, candidate, 8]`` of sentences of these sizes.

    How far ahead a candidate stands, as a share of the sentence; how far behind; whether it
    stands at the offsets 0, -1, +1, -2, +2; whether it is ROOT.

    >>> distances(torch.tensor([2]), 2)[0, 0].tolist()[2]
    [0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    place = torch.arange(most, device=sizes.device)
    offset = (place[None, :] - place[:, None]).float()
    near = torch.stack([(offset == one).float() for one in _OFFSETS], dim=-1)
    far = torch.stack([offset.clamp(min=0), (-offset).clamp(min=0)], dim=-1)
    share = far / sizes[:, None, None, None]
    words = torch.cat([share, near.expand(len(sizes), -1, -1, -1)], dim=-1)
    features = torch.zeros(len(sizes), most, most + 1, FEATURES, device=sizes.device)
    features[:, :, 1:, : FEATURES - 1] = words
    features[:, :, 0, FEATURES - 1] = 1
    return features


# --- A fresh probe of each kind -----------------------------------------------------------------


def fresh(
    kind: str, heads: int, vectors: Tensor | None, *, seed: int = 0, shifted: bool = False
) -> Scorer:
    """A probe with numbers drawn from a seed.

    >>> type(fresh("attention", 72, None)).__name__
    'AttentionScores'
    """
    if kind == "attention":
        return AttentionScores(heads, seed)
    if vectors is None:
        raise UsageError(f"The probe '{kind}' needs vectors of words; give --words (words=).")
    if kind == "distances":
        return DistanceScores(vectors, seed, shifted)
    return WordScores(heads, vectors, seed, shifted)


# --- Training -----------------------------------------------------------------------------------


def train(
    model: nn.Module,
    examples: Sequence[ProbeExample],
    settings: Settings,
    seed: int = 0,
    title: str = "Training",
    loss: Callable[[Any, Sequence[ProbeExample]], Tensor] | None = None,
) -> None:
    """Train in place, on the device where the model is; by default a scorer, by `loss_of`.

    Adam is TensorFlow's, as Clark et al. have it (Kingma & Ba 2015, the last lines of section 2):
    epsilon is added to the uncorrected root. torch adds it to the corrected one; over a treebank
    that moves weights in the fourth decimal.
    """
    device = next(model.parameters()).device
    loss = loss or (lambda scorer, group: loss_of(scorer, batch_of(group, device)))
    adam = torch.optim.Adam(model.parameters())
    total, done, steps = settings.epochs * len(examples), 0, 0
    with working(title, total) as shown:
        for epoch in range(settings.epochs):
            if settings.as_authors:
                groups = example_batches(examples, settings.batch)
            else:
                groups = shuffled(examples, settings.batch, seed=1000 * seed + epoch)
            for group in groups:
                adam.zero_grad()
                loss(model, group).backward()
                steps += 1
                share = 1.0 if settings.as_authors else 1 - done / total
                epsilon = 1e-8 / (1 - 0.999**steps) ** 0.5
                adam.param_groups[0].update(lr=settings.rate * share, eps=epsilon)
                adam.step()
                done += len(group)
                shown.to(done)


def loss_of(scorer: Scorer, batch: ProbeBatch) -> Tensor:
    """The cross-entropy, summed over the words of a sentence, averaged over sentences."""
    scores = allowed(scorer(batch), batch)
    summed = cross_entropy(
        scores.flatten(0, 1), batch.heads.flatten(), ignore_index=UNKNOWN, reduction="sum"
    )
    return summed / len(batch.sizes)


def allowed(scores: Tensor, batch: ProbeBatch) -> Tensor:
    """Scores with padding at minus infinity."""
    return scores.masked_fill(~batch.candidates[:, None], -torch.inf)


#: The rank of B; beyond it the authors saw no gain.
RANK = 64
#: Each of this number of the training sentences is kept to choose the layer on.
_KEPT = 10

#: Bool ``[word, word]``, symmetric: the arcs of a sentence, whatever their direction.
Arcs = NDArray[np.bool_]
#: Hidden states of a sentence's words, ``[layer, word, width]``, by the number of the sentence.
States = Mapping[int, Tensor]


def undirected_hits(trees: Sequence[Arcs], examples: Sequence[ProbeExample]) -> NDArray[np.int64]:
    """``[sentence, 2]``: arcs between words that are among those found, and arcs that count.

    As for the UAS, words labelled punct are left out as dependents; the root has no such arc.
    """
    rows = []
    for arcs, example in zip(trees, examples, strict=True):
        gold = example.heads.numpy()
        words = np.flatnonzero(example.scored.numpy() & (gold > 0))
        rows.append((int(arcs[words, gold[words] - 1].sum()), len(words)))
    return np.array(rows, dtype=np.int64)


def undirected_arcs(heads: NDArray[np.int64]) -> Arcs:
    """The arcs of a choice of heads, one a word; 0 is ROOT.

    >>> undirected_arcs(np.array([2, 0])).tolist()
    [[False, True], [True, False]]
    """
    arcs = np.zeros((len(heads), len(heads)), dtype=bool)
    words = np.flatnonzero(heads > 0)
    arcs[words, heads[words] - 1] = True
    found: Arcs = arcs | arcs.T
    return found


def tree_distances(example: ProbeExample) -> NDArray[np.float64]:
    """How many arcs lie between every two words; infinite where there is no path."""
    found: NDArray[np.float64] = shortest_path(
        undirected_arcs(example.heads.numpy()), unweighted=True
    )
    return found


def word_states(subject: Subject, corpus: Corpus, read: Gathered, batch_size: int) -> States:
    """The hidden states of every word, the mean over its pieces, after each layer."""
    stack, model = probed_stack(subject), subject.inner
    if stack == "enc" and hasattr(model, "get_encoder") and "cross" in subject.anatomy.stacks:
        model = model.get_encoder()
    wanted, states, room = {one.index: len(one) for one in read.examples}, dict[int, Tensor](), None
    encoded = batches_of(subject, corpus, PassOptions((stack,), batch_size))
    with (
        torch.no_grad(),
        eval_mode(subject.model),
        capture_hooks_off(subject.model),
        enough_memory(subject),
        working(f"Hidden states of {Path(corpus.name).name}", len(wanted)) as shown,
    ):
        for batch in encoded:
            side = batch.query(stack)
            assert side is not None
            assert side.words is not None  # gathered before
            inputs = batch.to(subject.device).inputs
            inputs = {name: inputs[name] for name in inputs if not name.startswith("decoder_")}
            hidden = getattr(model(**inputs, output_hidden_states=True), "hidden_states", None)
            if hidden is None:
                raise ModelError(
                    f"{subject.name} gives no hidden states, which the structural probe reads; "
                    "leave it out (--kind attention, or name other baselines)."
                )
            layers = torch.stack(hidden)
            if not bool(torch.isfinite(layers.sum())):
                refuse_nan(subject, stack)
            pieces = side.words.pieces.to(layers.device, layers.dtype)
            means = pieces @ layers / pieces.sum(-1, keepdim=True).clamp_min(1)
            if room is None:
                cells = sum(wanted.values()) * layers.shape[0] * layers.shape[-1]
                room = Room(cells, torch.float16)
            for row, (index, window) in enumerate(zip(batch.index, batch.window, strict=True)):
                if index in wanted and not window:
                    own = means[:, row, : wanted[index]]
                    states[index] = room.block(*own.shape).copy_(own.clamp(-6e4, 6e4))
            shown.to(len(states))
    return states


class TreeDistances(nn.Module):
    """A map for each layer, all trained at once: ``[layer, width, rank]``.

    `scale` makes the states of a layer alike in size, which a linear map could do as well.
    """

    def __init__(self, layers: int, width: int, scale: Tensor, seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        drawn = torch.rand(layers, width, min(RANK, width), generator=draw)
        self.maps = nn.Parameter((2 * drawn - 1) * 0.05)
        self.scale = scale

    def forward(self, states: Tensor) -> Tensor:
        """Squared distances ``[..., layer, word, word]`` of ``[..., layer, word, width]``."""
        placed = (states * self.scale[:, None, None]) @ self.maps
        squares = (placed**2).sum(-1)
        product = placed @ placed.transpose(-1, -2)
        return (squares[..., None] + squares[..., None, :] - 2 * product).clamp_min(0)


def trained(
    examples: Sequence[ProbeExample], states: States, settings: Settings, seed: int
) -> TreeDistances:
    """Train on the distances of all pairs of words, each sentence's mean counting alike."""
    some = states[examples[0].index]
    sizes = torch.stack([states[one.index].float().pow(2).mean((1, 2)) for one in examples[:200]])
    model = TreeDistances(
        some.shape[0], some.shape[2], sizes.mean(0).clamp_min(1e-12).rsqrt(), seed
    )
    gold = {one.index: torch.from_numpy(tree_distances(one)).float() for one in examples}
    train(
        model,
        examples,
        settings,
        seed,
        f"Training {STRUCTURAL}, seed {seed}",
        lambda model, group: _loss(model, group, states, gold),
    )
    return model


def _loss(
    model: TreeDistances, group: Sequence[ProbeExample], states: States, gold: Mapping[int, Tensor]
) -> Tensor:
    """The mean absolute difference over a sentence's pairs, its mean over sentences, all layers."""
    most = max(map(len, group))
    whole = torch.full((len(group), most, most), torch.inf)
    for row, one in zip(whole, group, strict=True):
        row[: len(one), : len(one)] = gold[one.index]
    there = torch.isfinite(whole)
    weights = there / there.sum((1, 2), keepdim=True)
    # [word, layer, width] of each, since sentences are padded along their first axis.
    padded = pad_sequence([states[one.index].transpose(0, 1) for one in group], batch_first=True)
    apart = model(padded.transpose(1, 2).float()) - whole.where(there, 0)[:, None]
    return (apart.abs() * weights[:, None]).sum() / len(group)


@torch.no_grad()
def spanning_trees(
    model: TreeDistances, examples: Sequence[ProbeExample], states: States
) -> list[list[Arcs]]:
    """The minimum spanning tree of each sentence, by layer; words labelled punct are left out."""
    trees: list[list[Arcs]] = [[] for _ in model.maps]
    for one in examples:
        distances = model(states[one.index].float()[None])[0].double().numpy()
        kept = np.flatnonzero(one.scored.numpy() | (one.heads.numpy() == UNKNOWN))
        for layer, own in enumerate(distances):
            arcs = np.zeros(own.shape, dtype=bool)
            # To scipy 0 is no arc; a number added to all of them changes no tree.
            tree = minimum_spanning_tree(own[np.ix_(kept, kept)] + 1.0).toarray() > 0
            arcs[np.ix_(kept, kept)] = tree | tree.T
            trees[layer].append(arcs)
    return trees


def structural_hits(
    train: tuple[Sequence[ProbeExample], States],
    test: tuple[Sequence[ProbeExample], States],
    settings: Settings,
    seed: int,
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Hits on the test sentences, and what was chosen.

    Every layer has a map of its own; the layer is chosen on training sentences that none of them
    was trained on, every tenth.
    """
    examples, states = train
    kept = list(examples[_KEPT - 1 :: _KEPT]) or list(examples)
    rest = [one for place, one in enumerate(examples) if place % _KEPT != _KEPT - 1]
    model = trained(rest, states, settings, seed)
    shares = []
    for trees in spanning_trees(model, kept, states):
        hits, arcs = undirected_hits(trees, kept).sum(0)
        shares.append(float(hits / max(arcs, 1)))
    layer = int(np.argmax(shares))
    trees = spanning_trees(model, test[0], test[1])[layer]
    about = {"layer": layer, "layers": len(shares) - 1, "rank": model.maps.shape[-1]}
    return undirected_hits(trees, test[0]), about
