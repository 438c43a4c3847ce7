"""Sentences with trees written in a line, and sightings of maps between their words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.text.batch import Batch, Side, bare_side
from headcount.text.sentence import Sentence, Word, spaced
from headcount.text.words import Words
from headcount.wiring.sighting import Sighting


def tree(line: str) -> Sentence:
    """A sentence from "The/det/2 cat/nsubj/3 sat/root/0"; a word alone is not annotated."""
    parts = [word.split("/") for word in line.split()]
    return spaced(
        [
            Word(form, deprel=rest[0], head=int(rest[1])) if rest else Word(form)
            for form, *rest in parts
        ]
    )


def site(stack: str = "enc", layer: int = 0, heads: int = 1, causal: bool = False) -> Site:
    return Site(stack, layer, heads, heads, 4, f"layer.{layer}", causal=causal)


def words_of(sentences: Sequence[Sentence | None], extra: int = 0) -> Words:
    """One token a word, nothing else in the row, padding behind."""
    sizes = [len(sentence.words or ()) if sentence else 0 for sentence in sentences]
    width = max(sizes) + extra
    there = torch.arange(width) < torch.tensor(sizes)[:, None]
    return Words(torch.eye(width, dtype=torch.bool) & there[:, None], there, list(sentences))


def side_of(words: Words) -> Side:
    real = torch.ones(len(words), words.pieces.shape[-1], dtype=torch.bool)
    bare = bare_side(real.long(), real)
    return Side(**{**bare.__dict__, "words": words})


def batch_of(side: Side, index: Sequence[int] | None = None) -> Batch:
    numbers = list(range(len(side)) if index is None else index)
    return Batch({}, {"source": side}, numbers, [0] * len(numbers))


def sight(
    sentences: Sequence[Sentence],
    maps: Sequence[Sequence[Sequence[Sequence[float]]]],
    where: Site | None = None,
    index: Sequence[int] | None = None,
    extra: int = 0,
) -> Sighting:
    """A sighting of maps written out, `[head, word, word]` for each sentence."""
    side = side_of(words_of(sentences, extra))
    width = side.real.shape[1]
    rows = [torch.tensor(one, dtype=torch.float32) for one in maps]
    padded = torch.zeros(len(rows), len(rows[0]), width, width)
    for place, one in enumerate(rows):
        padded[place, :, : one.shape[-1], : one.shape[-1]] = one
    where = where or site(heads=padded.shape[1])
    return sighting_of(where, side, padded, batch_of(side, index))


def sighting_of(where: Site, side: Side, maps: Tensor, batch: Batch) -> Sighting:
    return Sighting(where, batch, side, side, side.real.long(), maps=maps)
