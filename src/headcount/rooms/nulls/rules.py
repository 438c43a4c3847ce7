"""Rules without a model that say which word another one points to: offsets, classes, a choice.

A head that follows a relation is compared with what its sentence alone gives away: a fixed offset
(Clark et al., BlackBoxNLP 2019, Table 1), the nearest word of a part of speech, and a logistic
choice among the words of the sentence (McFadden 1974) on parts of speech, distance and identity.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.rooms.nulls.pointing import AskedArcs, Flags, Places, Pointing
from headcount.rooms.relations import OFFSETS

# --- Rung 2: the nearest word of a class, to the left or to the right -----------------------------

_TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN", "SCONJ",
    "VERB",
)  # fmt: skip
_UNIONS = (
    "NOUN PROPN", "NOUN PROPN PRON", "NOUN PROPN ADJ", "VERB AUX", "VERB ADJ",
    "NOUN PROPN VERB ADJ ADV",
)  # fmt: skip
#: Without tags: words by how frequent they are in the text, the most frequent first.
_BANDS = (10, 50, 200, 1000)
_NOWHERE = -1


class WordClasses(NamedTuple):
    """Kinds of words by name, and which words are of each, ``[class, word]``."""

    names: tuple[str, ...]
    members: Flags


def word_classes(pointing: Pointing) -> WordClasses:
    """Parts of speech and their unions; by frequency and form where no word has a tag.

    A word that the model does not have whole is of no class.
    """
    tags = pointing.tags
    if (tags != "").any():
        names = (*_TAGS, *(" or ".join(one.split()) for one in _UNIONS))
        kinds = [[one] for one in _TAGS] + [one.split() for one in _UNIONS]
        return WordClasses(
            names, np.stack([np.isin(tags, kind) for kind in kinds]) & pointing.there
        )
    rank = frequency_ranks(pointing.forms)
    length = np.char.str_len(pointing.forms)
    letters = np.array([form.isalpha() for form in pointing.forms], dtype=bool)
    made: list[tuple[str, Flags]] = []
    for first, last in zip((0, *_BANDS), (*_BANDS, len(rank)), strict=True):
        made.append((f"words {first + 1} to {last} by frequency", (rank >= first) & (rank < last)))
    made += [(f"words beyond the {band} most frequent", rank >= band) for band in _BANDS]
    made += [
        ("capitalised words", pointing.capital),
        ("words with a digit or sign", ~letters),
        ("words of up to 3 letters", letters & (length <= 3)),
        ("words of 7 letters or more", letters & (length >= 7)),
    ]
    names, members = zip(*((name, own & letters) if "by freq" in name or "beyond" in name
                           else (name, own) for name, own in made), strict=True)  # fmt: skip
    return WordClasses(tuple(names), np.stack(members) & pointing.there)


def frequency_ranks(forms: NDArray[np.str_]) -> Places:
    """The rank of each word by frequency in the text, 0 for the most frequent.

    >>> frequency_ranks(np.array(["the", "cat", "saw", "the", "dog"])).tolist()
    [0, 1, 2, 0, 3]
    """
    counts = Counter(forms.tolist())
    ranks = {form: rank for rank, (form, _) in enumerate(counts.most_common())}
    return np.array([ranks[form] for form in forms.tolist()], dtype=np.int64)


def nearest_members(members: Flags, starts: Places, sizes: Places) -> tuple[Places, Places]:
    """For every word the nearest member to its left and to its right in its text; else -1.

    >>> one = np.array([[True, False, False, True]])
    >>> left, right = nearest_members(one, np.array([0]), np.array([4]))
    >>> left.tolist(), right.tolist()
    ([[-1, 0, 0, 0]], [[3, 3, 3, -1]])
    """
    count = members.shape[1]
    place = np.arange(count)
    first = np.repeat(starts, sizes)
    last = first + np.repeat(sizes, sizes) - 1
    seen = np.maximum.accumulate(np.where(members, place, -1), axis=1)
    left = np.concatenate([np.full((len(members), 1), -1), seen[:, :-1]], axis=1)
    ahead = np.minimum.accumulate(np.where(members, place, count)[:, ::-1], axis=1)[:, ::-1]
    right = np.concatenate([ahead[:, 1:], np.full((len(members), 1), count)], axis=1)
    return np.where(left >= first, left, _NOWHERE), np.where(right <= last, right, _NOWHERE)


class Null(NamedTuple):
    """A rule as it was chosen on one half: what it is called, and on which arcs it is right."""

    name: str
    hits: Flags


class Rules:
    """The rules for the words of a corpus, chosen for one relation and direction at a time."""

    def __init__(self, pointing: Pointing) -> None:
        self._pointing = pointing

    @cached_property
    def _near(self) -> tuple[list[str], Places]:
        """Rules by name, and the word that each gives from every word, ``[rule, word]``."""
        own = self._pointing
        classes = word_classes(own)
        near = nearest_members(classes.members, own.starts, own.sizes)
        names = [f"nearest {name} {side}" for side in ("left", "right") for name in classes.names]
        # Heads that rest on the first word follow whatever a sentence begins with.
        ends = np.stack([own.starts, own.starts + own.sizes - 1])[:, own.text]
        return [*names, "first word", "last word"], np.concatenate([*near, ends])

    def offset(self, asked: AskedArcs) -> Null:
        """Rung 1: the fixed offset that is right most often on the half that chooses."""
        tried = sorted(OFFSETS, key=lambda step: (abs(step), step))
        hits = asked.query + np.array(tried)[:, None] == asked.target
        best = _best(hits, asked)
        return Null(f"offset {tried[best]:+d}", hits[best])

    def nearest(self, asked: AskedArcs) -> Null:
        """Rung 2: the nearest word of a class on a side, or the first or last word of the text."""
        names, found = self._near
        hits = found[:, asked.query] == asked.target
        best = _best(hits, asked)
        return Null(names[best], hits[best])

    @cached_property
    def choice(self) -> WordChoice:
        """Rung 3, whose features are made once."""
        return WordChoice(self._pointing)


def _best(hits: Flags, asked: AskedArcs) -> int:
    return int(hits[:, ~asked.judged].sum(axis=1).argmax())


# --- Rung 3: a logistic choice among the words of the sentence ------------------------------------

#: Words known by themselves; all others are one.
_KNOWN = 500
#: Upper ends of the bins of a distance, on each side.
_DISTANCES = np.array([1, 2, 3, 4, 6, 9, 14, 10**6])
#: L2 penalties that the inner split chooses from, and steps of the optimiser.
PENALTIES = (0.3, 3.0)
_STEPS = 40


class _Pairs(NamedTuple):
    """Candidates of all arcs, one after another."""

    #: ``[pair, feature]``, each the number of a weight.
    features: Tensor
    arc: Tensor
    #: Whether the candidate is the arc's target.
    right: Tensor


class WordChoice:
    """Learns to choose the word that a relation points to, as a logistic regression over words.

    The weight of a candidate is a sum over: the two parts of speech, the signed distance (binned),
    the candidate, its left and its right neighbour and, by side, the word that asks (each among
    the 500 most frequent), whether punctuation stands between, and whether the candidate is the
    first of its part of speech on its side.
    """

    def __init__(self, pointing: Pointing) -> None:
        self._pointing = pointing
        ranks = frequency_ranks(pointing.forms) if len(pointing.forms) else np.zeros(0, np.int64)
        self._word = np.minimum(ranks, _KNOWN)
        names, self._tag = np.unique(pointing.tags, return_inverse=True)
        self._tags = len(names)
        signs = (pointing.tags == "PUNCT") | np.array(
            [not any(map(str.isalnum, form)) for form in pointing.forms], dtype=bool
        )
        self._punctuation = np.concatenate([[0], np.cumsum(signs)])
        edges = np.concatenate([[True], pointing.text[1:] != pointing.text[:-1]])
        self._before = np.where(edges, _KNOWN + 1, np.roll(self._word, 1))
        self._after = np.where(np.roll(edges, -1), _KNOWN + 1, np.roll(self._word, -1))
        kinds = np.arange(self._tags)[:, None] == self._tag
        self._left, self._right = nearest_members(kinds, pointing.starts, pointing.sizes)

    def __call__(self, asked: AskedArcs, direction: str) -> Null:
        """Fit on the half that chooses, the penalty by an inner split; hits on all arcs."""
        own = np.flatnonzero(~asked.judged)
        inner = asked.unit[own] % 3 == 0
        fits = self._pairs(asked, direction, own[~inner])
        held = self._pairs(asked, direction, own[inner])
        scores = [_accuracy(_fit(fits, self._size, one), held) for one in PENALTIES]
        penalty = PENALTIES[int(np.argmax(scores))]
        weights = _fit(self._pairs(asked, direction, own), self._size, penalty)
        every = self._pairs(asked, direction, np.arange(len(asked.query)))
        name = f"logistic choice, penalty {penalty:g}"
        return Null(name, _chosen_right(weights, every, len(asked.query)))

    @property
    def _size(self) -> int:
        return self._tags**2 + 2 * len(_DISTANCES) + 5 * (_KNOWN + 2) + 4 + 2 * self._tags

    def _pairs(self, asked: AskedArcs, direction: str, arcs: Places) -> _Pairs:
        """Every arc with every word that could be its target."""
        own, query = self._pointing, asked.query[arcs]
        text = own.text[query]
        sizes, starts = own.sizes[text], own.starts[text]
        arc = np.repeat(np.arange(len(arcs)), sizes)
        word = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes - starts, sizes)
        source = query[arc]
        kept = own.there[word] & (word != source)
        if own.causal:
            kept &= word > source if direction == "head<-dep" else word < source
        arc, word, source = arc[kept], word[kept], source[kept]
        step = word - source
        side = (step > 0).astype(np.int64)
        away = np.searchsorted(_DISTANCES, np.abs(step)) + side * len(_DISTANCES)
        low, high = np.minimum(word, source), np.maximum(word, source)
        between = (self._punctuation[high] - self._punctuation[low + 1] > 0) * 2 + side
        tag = self._tag[word]
        first = np.where(side == 1, self._right[tag, source], self._left[tag, source]) == word
        blocks = [
            (self._tag[source] * self._tags + tag, self._tags**2),
            (away, 2 * len(_DISTANCES)),
            (self._word[word], _KNOWN + 2),
            (self._before[word], _KNOWN + 2),
            (self._after[word], _KNOWN + 2),
            (self._word[source] + side * (_KNOWN + 2), 2 * (_KNOWN + 2)),
            (between, 4),
            (tag + first * self._tags, 2 * self._tags),
        ]
        ends = np.cumsum([size for _, size in blocks])
        features = np.stack(
            [block + end - size for (block, size), end in zip(blocks, ends, strict=True)], axis=1
        )
        right = word == asked.target[arcs][arc]
        return _Pairs(*(torch.from_numpy(part) for part in (features, arc, right)))


def _fit(pairs: _Pairs, size: int, penalty: float) -> Tensor:
    """The weights that make the targets most likely, less half the penalty times their squares."""
    weights = torch.zeros(size, requires_grad=True)
    arcs = int(pairs.arc.max()) + 1 if len(pairs.arc) else 0
    optimiser = torch.optim.LBFGS([weights], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        score = weights[pairs.features].sum(1)
        total = torch.zeros(arcs).index_add(0, pairs.arc, score.clamp(-60, 60).exp())
        cost = total.log().sum() - score[pairs.right].sum() + penalty / 2 * weights.square().sum()
        cost.backward()
        return cost

    if arcs:
        optimiser.step(loss)
    return weights.detach()


def _chosen_right(weights: Tensor, pairs: _Pairs, arcs: int) -> Flags:
    """Whether the most likely candidate of each arc is its target."""
    score = weights[pairs.features].sum(1)
    best = torch.full((arcs,), -torch.inf).scatter_reduce(0, pairs.arc, score, "amax")
    right = torch.full((arcs,), -torch.inf)
    right[pairs.arc[pairs.right]] = score[pairs.right]
    found: Flags = ((right == best) & (best > -torch.inf)).numpy()
    return found


def _accuracy(weights: Tensor, held: _Pairs) -> float:
    arcs = int(held.arc.max()) + 1 if len(held.arc) else 0
    return float(_chosen_right(weights, held, arcs).mean()) if arcs else 0.0
