"""The fixed baseline of `benchmarks.relations`: dependency hits, one map at a time, in NumPy.

Each map is reduced to words, each word's argmax found, and each arc scored in all three directions
and against all offsets of the convention `headcount`. It is what one writes after reading the
papers; change it and the ratio means something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

OFFSETS = range(-8, 9)


class Annotated(NamedTuple):
    """A sentence: the tokens of each word, its head (from 0; -1 is the root), its relation."""

    tokens: list[list[int]]
    heads: list[int]
    relations: list[str]


def word_map(weights: np.ndarray, tokens: Sequence[Sequence[int]]) -> np.ndarray:
    """Attention between words: columns added up, rows averaged."""
    columns = np.stack([weights[:, word].sum(axis=1) for word in tokens], axis=1)
    return np.stack([columns[word].mean(axis=0) for word in tokens])


def score_map(weights: np.ndarray, sentence: Annotated, hits: Counter[tuple[str, str]]) -> None:
    """Add one map's hits, by direction and relation."""
    between = word_map(weights, sentence.tokens)
    np.fill_diagonal(between, -np.inf)
    rows, columns = between.argmax(axis=1), between.argmax(axis=0)
    for word, (head, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
        if head < 0:
            continue
        hits["dep->head", relation] += int(rows[word] == head)
        hits["head->dep", relation] += int(rows[head] == word)
        hits["head<-dep", relation] += int(columns[word] == head)


def score_offsets(sentence: Annotated, hits: Counter[tuple[int, str]]) -> None:
    """Add one sentence's hits of every fixed offset."""
    for word, (head, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
        for offset in OFFSETS:
            hits[offset, relation] += int(head >= 0 and word + offset == head)


def score(
    maps: Sequence[np.ndarray], sentences: Sequence[Annotated]
) -> tuple[dict[tuple[int, int], Counter[tuple[str, str]]], Counter[tuple[int, str]]]:
    """Hits of every head, and of every offset; maps are `[layer, head, token, token]`."""
    by_head: dict[tuple[int, int], Counter[tuple[str, str]]] = {}
    by_offset: Counter[tuple[int, str]] = Counter()
    for weights, sentence in zip(maps, sentences, strict=True):
        score_offsets(sentence, by_offset)
        for layer in range(weights.shape[0]):
            for head in range(weights.shape[1]):
                hits = by_head.setdefault((layer, head), Counter())
                score_map(weights[layer, head], sentence, hits)
    return by_head, by_offset
