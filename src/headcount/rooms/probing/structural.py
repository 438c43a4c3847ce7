"""The structural probe: are distances between a model's hidden states those of a tree?

Hewitt & Manning, NAACL 2019: a linear map B of low rank such that ``|B(h_i - h_j)|^2`` is the
number of arcs between the words i and j, trained by the absolute difference. The minimum spanning
tree of the distances is undirected: its figure is UUAS, the share of arcs that are in it. Clark et
al. 2019 put it beside their probes of attention (Table 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.models import Subject, capture_hooks_off, enough_memory, eval_mode, refuse_nan
from headcount.records import working
from headcount.rooms.probing.data import (
    STRUCTURAL,
    UNKNOWN,
    Gathered,
    ProbeExample,
    Room,
    Settings,
    probed_stack,
)
from headcount.rooms.probing.scorers import Adam, shuffled
from headcount.text import Corpus, encode, intake_of

#: The rank of B; beyond it the authors saw no gain.
RANK = 64
#: Each of this number of the training sentences is kept to choose the layer on.
_KEPT = 10

#: Bool ``[word, word]``, symmetric: the arcs of a sentence, whatever their direction.
Arcs = NDArray[np.bool_]
#: Hidden states of a sentence's words, ``[layer, word, width]``, by the number of the sentence.
States = Mapping[int, Tensor]


def undirected_hits(found: Sequence[Arcs], examples: Sequence[ProbeExample]) -> NDArray[np.int64]:
    """``[sentence, 2]``: arcs between words that are among those found, and arcs that count.

    As for the UAS, words labelled punct are left out as dependents; the root has no such arc.
    """
    rows = []
    for arcs, example in zip(found, examples, strict=True):
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
    wanted, found, room = {one.index: len(one) for one in read.examples}, dict[int, Tensor](), None
    encoded = encode(
        corpus, subject.tokenizer, stacks={stack}, batch_size=batch_size, words=True,
        intake=intake_of(subject.model, subject.tokenizer),
    )  # fmt: skip
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
            inputs = {
                name: part.to(subject.device)
                for name, part in batch.inputs.items()
                if not name.startswith("decoder_")
            }
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
                    found[index] = room.block(*own.shape).copy_(own.clamp(-6e4, 6e4))
            shown.to(len(found))
    return found


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
    adam, gold = Adam(model.parameters(), settings.rate), {}
    for one in examples:
        gold[one.index] = torch.from_numpy(tree_distances(one)).float()
    total, done = settings.epochs * len(examples), 0
    with working(f"Training {STRUCTURAL}, seed {seed}", total) as shown:
        for epoch in range(settings.epochs):
            for group in shuffled(examples, settings.batch, seed=1000 * seed + epoch):
                _loss(model, group, states, gold).backward()
                adam.update(1 - done / total)
                done += len(group)
                shown.to(done)
    return model


def _loss(
    model: TreeDistances, group: Sequence[ProbeExample], states: States, gold: Mapping[int, Tensor]
) -> Tensor:
    """The mean absolute difference over a sentence's pairs, its mean over sentences, all layers."""
    most = max(len(one) for one in group)
    whole = torch.full((len(group), most, most), torch.inf)
    for row, one in zip(whole, group, strict=True):
        row[: len(one), : len(one)] = gold[one.index]
    there = torch.isfinite(whole)
    weights = there / there.sum((1, 2), keepdim=True)
    apart = model(_padded(group, states, most)) - whole.where(there, 0)[:, None]
    return (apart.abs() * weights[:, None]).sum() / len(group)


def _padded(group: Sequence[ProbeExample], states: States, most: int) -> Tensor:
    first = states[group[0].index]
    found = torch.zeros(len(group), first.shape[0], most, first.shape[2])
    for row, one in zip(found, group, strict=True):
        row[:, : len(one)] = states[one.index]
    return found


@torch.no_grad()
def spanning_trees(
    model: TreeDistances, examples: Sequence[ProbeExample], states: States
) -> list[list[Arcs]]:
    """The minimum spanning tree of each sentence, by layer; words labelled punct are left out."""
    found: list[list[Arcs]] = [[] for _ in model.maps]
    for one in examples:
        distances = model(states[one.index].float()[None])[0].double().numpy()
        kept = np.flatnonzero(one.scored.numpy() | (one.heads.numpy() == UNKNOWN))
        for layer, own in enumerate(distances):
            arcs = np.zeros(own.shape, dtype=bool)
            # To scipy 0 is no arc; a number added to all of them changes no tree.
            tree = minimum_spanning_tree(own[np.ix_(kept, kept)] + 1.0).toarray() > 0
            arcs[np.ix_(kept, kept)] = tree | tree.T
            found[layer].append(arcs)
    return found


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
