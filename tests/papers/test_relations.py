"""Dependency accuracies again, in loops, from their definitions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from trees import batch_of, side_of, sighting_of, site, tree

from headcount.rooms.relations.relations import CLARKS_OFFSETS, OFFSETS, Relations
from headcount.text.sentence import Sentence
from headcount.text.words import Words

HEADS = 3
LABELS = ["det", "nsubj", "nsubj:pass", "poss", "punct"]


def draw(seed: int) -> tuple[list[Sentence], list[list[list[int]]], list[np.ndarray]]:
    """Sentences with random trees, words of one to three tokens after a [CLS], and their maps."""
    noise = np.random.default_rng(seed)
    sentences, tokens, maps = [], [], []
    for _ in range(12):
        n = int(noise.integers(1, 7))
        root = int(noise.integers(n))
        words = []
        for place in range(n):
            head = (
                0 if place == root else 1 + int(noise.choice([w for w in range(n) if w != place]))
            )
            form = noise.choice(["a", "b", "'s", "s'"])
            words.append(f"{form}/{'root' if head == 0 else noise.choice(LABELS)}/{head}")
        sentences.append(tree(" ".join(words)))
        sizes = noise.integers(1, 4, n)
        starts = 1 + np.cumsum([0, *sizes])
        tokens.append([list(range(a, b)) for a, b in pairwise(starts)])
        raw = noise.random((HEADS, starts[-1] + 1, starts[-1] + 1)) ** 4
        maps.append(raw / raw.sum(-1, keepdims=True))
    return sentences, tokens, maps


def word_map(weights: np.ndarray, tokens: list[list[int]], rows: str) -> np.ndarray:
    """Clark et al.'s reduction: add the columns of a word, average its rows or take the first."""
    columns = np.stack([weights[:, word].sum(-1) for word in tokens], axis=-1)
    return np.stack(
        [columns[word].mean(0) if rows == "mean" else columns[word[0]] for word in tokens]
    )


def slow_predictions(weights: np.ndarray, convention: str) -> list[int]:
    """The word each row points to, from 1; the word itself is left out, or has weight 0."""
    said = []
    for i, row in enumerate(weights):
        options = [(-(0.0 if i == j else w), j) for j, w in enumerate(row)]
        if convention == "headcount":
            options = [option for option in options if option[1] != i] or options
        said.append(min(options)[1] + 1)
    return said


def slow_correct(sentence: Sentence, said: list[int], convention: str) -> list[tuple[str, bool]]:
    """Clark et al.'s loop over the words of a sentence, with its rule for poss."""
    words, found = sentence.words or (), []
    for i, word in enumerate(words):
        right = said[i] == word.head
        marked = i + 1 < len(words) and words[i + 1].form in ("'s", "s'")
        if convention != "headcount" and word.deprel == "poss" and said[i] < len(words) and marked:
            right = said[i + 1] == word.head
        found.append((str(word.deprel), right))
    return found


def slow_voita(sentence: Sentence, said: list[int]) -> list[tuple[str, bool]]:
    """Voita et al.: the row of the head word points to the dependent."""
    return [
        (str(word.deprel), said[word.head - 1] == i + 1)
        for i, word in enumerate(sentence.words or ())
        if word.head
    ]


def offset_predictions(n: int, offset: int, convention: str) -> list[int]:
    if convention == "headcount":
        return [i + 1 + offset if 0 < i + 1 + offset <= n else -1 for i in range(n)]
    return [max(0, min(i + 1 + offset, n)) for i in range(n)]


def tallied(convention: str, rows: str, data: tuple, size: int) -> Relations:
    sentences, tokens, maps = data
    tally = Relations(convention, rows=rows)  # type: ignore[arg-type]
    for start in range(0, len(sentences), size):
        part = slice(start, start + size)
        width = max(len(one[0]) for one in maps[part])
        most = max(len(words) for words in tokens[part])
        padded = torch.zeros(len(maps[part]), HEADS, width, width, dtype=torch.float64)
        pieces = torch.zeros(len(maps[part]), most, width, dtype=torch.bool)
        for row, (one, words) in enumerate(zip(maps[part], tokens[part], strict=True)):
            padded[row, :, : one.shape[-1], : one.shape[-1]] = torch.from_numpy(one)
            for place, numbers in enumerate(words):
                pieces[row, place, numbers] = True
        side = side_of(Words(pieces, pieces.any(-1), sentences[part]))
        numbers = list(range(start, start + len(sentences[part])))
        tally.update(sighting_of(site(heads=HEADS), side, padded, batch_of(side, numbers)))
    return tally


def total(found: list[tuple[str, bool]], relation: str) -> tuple[int, int]:
    kept = [right for label, right in found if relation in ("all", label, label.split(":")[0])]
    return sum(kept), len(kept)


@pytest.mark.parametrize("size", [1, 5, 12])
@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
def test_hits_equal_their_definitions(convention: str, size: int) -> None:
    data = draw(seed=3)
    sentences, tokens, maps = data
    rows = "first" if convention == "code" else "mean"
    (counts,) = tallied(convention, rows, data, size).counts()
    assert counts.tried == (OFFSETS if convention == "headcount" else CLARKS_OFFSETS)
    for direction in counts.directions:
        for head in range(HEADS):
            found = []
            for sentence, words, weights in zip(sentences, tokens, maps, strict=True):
                reduced = word_map(weights[head], words, rows)
                if direction == "head<-dep":
                    reduced = reduced.T
                said = slow_predictions(reduced, convention)
                voitas = direction == "head->dep"
                found += (
                    slow_voita(sentence, said)
                    if voitas
                    else slow_correct(sentence, said, convention)
                )
            for relation in ["all", "det", "nsubj", "poss", "punct", "nsubj:pass"]:
                ours = counts.of(relation, direction)
                right, asked = total(found, relation)
                assert (ours.hits[:, head].sum(), ours.arcs.sum()) == (right, asked)


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
def test_offsets_equal_their_definitions(convention: str) -> None:
    data = draw(seed=4)
    (counts,) = tallied(convention, "mean", data, 5).counts()
    for place, offset in enumerate(counts.tried):
        found = []
        for sentence in data[0]:
            said = offset_predictions(len(sentence.words or ()), offset, convention)
            found += slow_correct(sentence, said, convention)
        for relation in ["all", "det", "nsubj", "poss", "punct"]:
            for direction in ("dep->head", "head<-dep"):
                ours = counts.of(relation, direction)
                assert ours.offsets[:, place].sum() == total(found, relation)[0]


def test_voitas_baseline_is_the_same_number_in_both_directions() -> None:
    """The share of the most frequent relative position does not ask who looks."""
    (counts,) = tallied("headcount", "mean", draw(seed=5), 12).counts()
    for relation in ["det", "nsubj", "punct"]:
        there, back = (
            counts.of(relation, way).offsets.sum(0) for way in ("dep->head", "head->dep")
        )
        np.testing.assert_array_equal(there, back[::-1])
