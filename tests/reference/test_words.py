"""Clark et al.'s maps between words, from their program, matched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headcount.models.subject import Subject
from headcount.text import Sentence, Word, encode, with_specials, word_maps, word_maps_with_specials
from headcount.text.batch import Side, bare_side
from headcount.text.sentence import spaced
from headcount.text.words import Rows, Words

HERE = Path(__file__).parent
ITEMS: list[dict[str, Any]] = json.loads((HERE / "inputs.json").read_text())["own_single"]


def sentence(item: dict[str, Any]) -> Sentence:
    return spaced(
        [Word(form, head=head) for form, head in zip(item["words"], item["heads"], strict=True)]
    )


def side(item: dict[str, Any]) -> Side:
    """A side whose words are the reference's own lists."""
    count = len(item["tokens"])
    pieces = torch.zeros(1, len(item["words"]), count, dtype=torch.bool)
    for word, tokens in enumerate(item["words_to_tokens"][1:-1]):
        pieces[0, word, tokens] = True
    bare = bare_side(torch.zeros(1, count, dtype=torch.long), torch.ones(1, count) > 0)
    bare.special[0, [0, -1]] = True
    words = Words(pieces, pieces.any(-1), [sentence(item)])
    return Side(**{**bare.__dict__, "words": words})


@pytest.mark.parametrize("rows", ["first", "mean", "max"])
@pytest.mark.parametrize("number", [0, 6])
def test_maps_between_words(number: int, rows: Rows) -> None:
    item = ITEMS[number]
    with np.load(HERE / "clark_words.npz") as found:
        maps, theirs = torch.from_numpy(found[f"{item['id']}/maps"]), found[f"{item['id']}/{rows}"]
    one = side(item)
    assert one.words is not None
    for layer in range(len(maps)):
        ours = word_maps_with_specials(maps[layer : layer + 1], one, one, rows=rows)
        np.testing.assert_allclose(ours[0], theirs[layer], atol=1e-6)
        plain = word_maps(maps[layer : layer + 1], one.words, one.words, rows=rows)
        np.testing.assert_allclose(plain[0], theirs[layer][:, 1:-1, 1:-1], atol=1e-6)


@pytest.mark.real
@pytest.mark.parametrize("size", [1, 16])
def test_the_tokens_of_each_word_from_the_texts(minilm: Subject, size: int) -> None:
    encoded = encode(
        [sentence(item) for item in ITEMS], minilm.tokenizer, stacks={"enc"}, batch_size=size
    )
    seen = 0
    for batch in encoded:
        words = with_specials(batch.sides["source"])
        for row, index in enumerate(batch.index):
            theirs = ITEMS[index]["words_to_tokens"]
            ours = [word.nonzero()[:, 0].tolist() for word in words.pieces[row]]
            assert ours[: len(theirs)] == theirs
            assert not any(ours[len(theirs) :])
            seen += 1
    assert seen == len(ITEMS)
    assert encoded.report.words == sum(len(item["words"]) for item in ITEMS)
    assert encoded.report.sentences_in_words() == []
