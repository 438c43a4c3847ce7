"""Clark et al.'s maps between words, from their program, matched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headcount.models.subject import Subject
from headcount.rooms.words.counts import word_maps
from headcount.text import Sentence, Word, encode
from headcount.text.sentence import spaced
from headcount.text.words import Rows, Words

HERE = Path(__file__).parent
ITEMS: list[dict[str, Any]] = json.loads((HERE / "inputs.json").read_text())["own_single"]


def sentence(item: dict[str, Any]) -> Sentence:
    return spaced(
        [Word(form, head=head) for form, head in zip(item["words"], item["heads"], strict=True)]
    )


def words_of(item: dict[str, Any]) -> Words:
    """The reference's own lists: [CLS] and [SEP] are words of one piece."""
    pieces = torch.zeros(1, len(item["words"]) + 2, len(item["tokens"]), dtype=torch.bool)
    for word, tokens in enumerate(item["words_to_tokens"]):
        pieces[0, word, tokens] = True
    return Words(pieces, pieces.any(-1), [sentence(item)])


@pytest.mark.parametrize("rows", ["first", "mean", "max"])
@pytest.mark.parametrize("number", [0, 6])
def test_maps_between_words(number: int, rows: Rows) -> None:
    item = ITEMS[number]
    with np.load(HERE / "clark_words.npz") as found:
        maps, theirs = torch.from_numpy(found[f"{item['id']}/maps"]), found[f"{item['id']}/{rows}"]
    words = words_of(item)
    plain = Words(words.pieces[:, 1:-1], words.there[:, 1:-1], words.sentences)
    for layer in range(len(maps)):
        ours = word_maps(maps[layer : layer + 1], words, words, rows=rows)
        np.testing.assert_allclose(ours[0], theirs[layer], atol=1e-6)
        ours = word_maps(maps[layer : layer + 1], plain, plain, rows=rows)
        np.testing.assert_allclose(ours[0], theirs[layer][:, 1:-1, 1:-1], atol=1e-6)


@pytest.mark.real
@pytest.mark.parametrize("size", [1, 16])
def test_the_tokens_of_each_word_from_the_texts(minilm: Subject, size: int) -> None:
    encoded = encode(
        [sentence(item) for item in ITEMS], minilm.tokenizer, stacks={"enc"}, batch_size=size
    )
    seen = 0
    for batch in encoded:
        words = batch.sides["source"].words
        assert words is not None
        for row, index in enumerate(batch.index):
            theirs = ITEMS[index]["words_to_tokens"][1:-1]
            ours = [word.nonzero()[:, 0].tolist() for word in words.pieces[row]]
            assert ours[: len(theirs)] == theirs
            assert not any(ours[len(theirs) :])
            seen += 1
    assert seen == len(ITEMS)
    assert encoded.report.words == sum(len(item["words"]) for item in ITEMS)
    assert encoded.report.sentences_in_words() == []
