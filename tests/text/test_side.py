from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.text.batch import Side, bare_side, side_of, spread
from headcount.text.spans import TokenRow
from headcount.text.words import Vocabulary

TOKENS = {0: "<pad>", 2: "<s>", 3: "</s>", 7: "rain", 8: ".", 9: "!", 10: "roof"}


def side(rows: list[TokenRow], left: bool = False) -> Side:
    vocabulary = Vocabulary(lambda ids: [TOKENS[number] for number in ids], " ".join)
    return side_of(rows, vocabulary, separators=(3,), pad_id=0, left=left)


ROWS = [TokenRow([2, 7, 8, 9, 3], [1, 0, 0, 0, 1]), TokenRow([2, 10, 3], [1, 0, 1])]


def test_padding_on_the_right() -> None:
    found = side(ROWS)
    assert found.ids.tolist() == [[2, 7, 8, 9, 3], [2, 10, 3, 0, 0]]
    assert found.real.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert found.tokens == [["<s>", "rain", ".", "!", "</s>"], ["<s>", "roof", "</s>"]]
    assert found.special.int().tolist() == [[1, 0, 0, 0, 1], [1, 0, 1, 0, 0]]
    assert found.separator.int().tolist() == [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]
    assert found.punctuation.int().tolist() == [[0, 0, 1, 1, 0], [0] * 5]
    assert found.stops.int().tolist() == [[0, 0, 1, 0, 0], [0] * 5]
    assert found.annotated
    assert len(found) == 2


def test_padding_on_the_left() -> None:
    found = side(ROWS, left=True)
    assert found.ids.tolist() == [[2, 7, 8, 9, 3], [0, 0, 2, 10, 3]]
    assert found.separator.int().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    assert found.tokens == side(ROWS).tokens


@pytest.mark.parametrize("left", [False, True])
def test_the_first_place_is_never_a_separator(left: bool) -> None:
    """BART's decoder starts with </s>, and GPT-2's first token may be its end of text."""
    rows = [TokenRow([3, 7, 8, 3], [1, 0, 0, 1]), TokenRow([3, 7], [1, 0])]
    found = side(rows, left)
    assert found.separator.sum(dim=1).tolist() == [1, 0]
    assert found.special.sum(dim=1).tolist() == [2, 1]


def test_a_lookalike_is_no_separator() -> None:
    assert side([TokenRow([2, 3, 7, 3], [1, 0, 0, 1])]).separator.int().tolist() == [[0, 0, 0, 1]]


def test_a_special_token_is_never_punctuation() -> None:
    found = side([TokenRow([8, 7, 8], [1, 0, 0])])
    assert found.punctuation.int().tolist() == [[0, 0, 1]]
    assert found.stops.int().tolist() == [[0, 0, 1]]


def test_no_separator_at_all() -> None:
    vocabulary = Vocabulary(lambda ids: ["x"] * len(ids), "".join)
    found = side_of([TokenRow([5, 6], [0, 0])], vocabulary, separators=(), pad_id=0)
    assert not found.separator.any()


def test_types_of_the_tensors() -> None:
    found = side(ROWS)
    assert found.ids.dtype == torch.int64
    masks = (found.real, found.special, found.separator, found.punctuation, found.stops)
    assert all(mask.dtype == torch.bool and mask.shape == (2, 5) for mask in masks)


def test_moving() -> None:
    moved = side(ROWS).to("meta")
    assert moved.ids.device.type == moved.stops.device.type == "meta"
    assert moved.tokens == side(ROWS).tokens


def test_a_bare_side_knows_nothing_of_its_tokens() -> None:
    real = torch.tensor([[True, True], [True, False]])
    bare = bare_side(torch.tensor([[5, 6], [7, 0]]), real)
    assert not bare.annotated
    assert not (bare.special | bare.separator | bare.punctuation | bare.stops).any()
    assert bare.tokens == [[], []]
    assert torch.equal(bare.real, real)


def test_spread() -> None:
    real = np.array([[True, True], [True, False]])
    assert spread(np.array([4, 5, 6]), real, -100).tolist() == [[4, 5], [6, -100]]
