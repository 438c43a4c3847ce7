"""Clark et al. 2019, section 4.3: antecedent selection again, in loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from trees import batch_of, side_of, sighting_of, site

from headcount.rooms.coreference.tally import CoreferenceTally
from headcount.text.sentence import Sentence, Span, Word, spaced
from headcount.text.words import Words

HEADS = 3
FORMS = ["Ann", "she", "her", "dogs", "they", "mayor", "Hill"]


def draw(seed: int) -> tuple[Sentence, list[list[int]], np.ndarray]:
    """A text of one-word mentions, words of one to three tokens after a [CLS], and its maps."""
    noise = np.random.default_rng(seed)
    n = int(noise.integers(4, 12))
    entity = noise.integers(0, 3, n)  # the third is no entity
    clusters = [[Span(i, i) for i in range(n) if entity[i] == e] for e in (0, 1)]
    words = [Word(str(noise.choice(FORMS))) for _ in range(n)]
    text = replace(spaced(words), clusters=tuple(tuple(c) for c in clusters if c))
    sizes, tokens, start = noise.integers(1, 4, n), [], 1
    for size in sizes:
        tokens.append(list(range(start, start + size)))
        start += size
    maps = noise.random((HEADS, start + 1, start + 1)) ** 4
    return text, tokens, maps / maps.sum(-1, keepdims=True)


def words_of(text: Sentence, tokens: list[list[int]], width: int) -> Words:
    pieces = torch.zeros(1, len(tokens), width, dtype=torch.bool)
    for word, places in enumerate(tokens):
        pieces[0, word, places] = True
    return Words(pieces, pieces.any(-1), [text])


def slow(
    text: Sentence, tokens: list[list[int]], maps: np.ndarray, candidates: str
) -> tuple[list[int], int, dict[str, int]]:
    """Hits of each head, questions, and hits of two baselines."""
    spans = sorted((span.first, e) for e, cluster in enumerate(text.clusters) for span in cluster)
    hits, asked, base = [0] * HEADS, 0, {"nearest": 0, "head match": 0}
    words = text.words or ()
    for place, entity in spans:
        earlier = [(p, e) for p, e in spans if p < place]
        right = {p for p, e in earlier if e == entity}
        if not right:
            continue
        asked += 1
        same = [p for p, e in earlier if words[p].form.lower() == words[place].form.lower()]
        base["nearest"] += earlier[-1][0] in right
        base["head match"] += bool(same) and same[-1] in right
        options = {
            "preceding": list(range(place)),
            "all": [p for p in range(len(tokens)) if p != place],
        }[candidates]
        for head in range(HEADS):
            weights = [
                np.mean([sum(maps[head, i, j] for j in tokens[word]) for i in tokens[place]])
                for word in options
            ]
            hits[head] += options[int(np.argmax(weights))] in right
    return hits, asked, base


@pytest.mark.parametrize(
    ("convention", "candidates"), [("headcount", "preceding"), ("paper", "all")]
)
def test_accuracies_and_baselines_are_as_defined(convention: str, candidates: str) -> None:
    tally, total, asked = CoreferenceTally(convention), np.zeros(HEADS), 0
    base = {"nearest": 0, "head match": 0}
    for seed in range(12):
        text, tokens, maps = draw(seed)
        hits, questions, rules = slow(text, tokens, maps, candidates)
        total, asked = total + hits, asked + questions
        base = {name: base[name] + rules[name] for name in base}
        side = side_of(words_of(text, tokens, maps.shape[-1]))
        weights = torch.from_numpy(maps).float()[None]
        tally.update(sighting_of(site(heads=HEADS), side, weights, batch_of(side, [seed])))
    frame = tally.frame().query("split == 'all' and kind == 'all'")
    assert asked > 20
    assert set(frame["n"]) == {asked}
    for name, count in base.items():
        rows = frame[frame["against"] == name]
        np.testing.assert_allclose(rows["accuracy"], total / asked)
        np.testing.assert_allclose(rows["baseline"], count / asked)
