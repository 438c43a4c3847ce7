"""Maps between words."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.text.batch import Side, bare_side
from headcount.text.sentence import Sentence, Word
from headcount.text.words import Words, with_specials, word_maps, word_maps_with_specials

#: [CLS] a1 a2 . b [SEP], and a row of one word with padding; "." belongs to no word.
PIECES = torch.tensor(
    [
        [[0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
        [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]],
    ],
    dtype=torch.bool,
)
SPECIAL = torch.tensor([[1, 0, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0]], dtype=torch.bool)
REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], dtype=torch.bool)
WORDS = Words(
    PIECES,
    PIECES.any(-1),
    [Sentence("a . b", (Word("a"), Word("b"))), Sentence("c", (Word("c"),))],
)


def some_maps(heads: int = 3) -> Tensor:
    """Attention that ends before the padding; rows of padding are not numbers."""
    scores = torch.randn(2, heads, 6, 6, generator=torch.Generator().manual_seed(1))
    maps = scores.masked_fill(~REAL[:, None, None], -torch.inf).softmax(-1)
    return maps.masked_fill(~REAL[:, None, :, None], torch.nan)


def side() -> Side:
    bare = bare_side(REAL.long(), REAL)
    return Side(**{**bare.__dict__, "special": SPECIAL, "words": WORDS})


def by_hand(maps: Tensor, rows: str) -> Tensor:
    """The definition, word by word: columns summed, then one row made of the pieces' rows."""
    found = torch.zeros(*maps.shape[:2], 2, 2)
    for row in range(2):
        for asking in range(2):
            mine = PIECES[row, asking].nonzero()[:, 0].tolist()
            for head in range(maps.shape[1]):
                for answering in range(2):
                    theirs = PIECES[row, answering].nonzero()[:, 0].tolist()
                    each = [maps[row, head, piece, theirs].sum() for piece in mine]
                    if each:
                        value = {"mean": sum(each) / len(each), "first": each[0], "max": max(each)}
                        found[row, head, asking, answering] = value[rows]
    return found


@pytest.mark.parametrize("rows", ["mean", "first"])
def test_columns_are_summed_and_rows_averaged_or_first(rows: str) -> None:
    maps = some_maps()
    ours = word_maps(maps, WORDS, WORDS, rows=rows)  # type: ignore[arg-type]
    torch.testing.assert_close(ours, by_hand(maps, rows))


def test_max_is_scaled_by_all_tokens() -> None:
    maps = some_maps()
    ours = word_maps(maps, WORDS, WORDS, rows="max")
    pieces = maps[0, :, 1:3]
    total = sum(
        pieces[:, :, list(tokens)].sum(-1).max(1).values
        for tokens in ((0,), (1, 2), (3,), (4,), (5,))
    )
    assert isinstance(total, Tensor)
    torch.testing.assert_close(ours[0, :, 0], by_hand(maps, "max")[0, :, 0] / total[:, None])


def test_an_undivided_multiword_token_serves_both_words() -> None:
    pieces = torch.tensor([[[True, False], [True, False], [False, True]]])
    words = Words(pieces, pieces.any(-1), [None])
    maps = torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]]])
    expected = [[0.75, 0.75, 0.25], [0.75, 0.75, 0.25], [0.5, 0.5, 0.5]]
    assert word_maps(maps, words, words)[0, 0].tolist() == expected


@pytest.mark.parametrize("rows", ["mean", "first", "max"])
def test_specials_as_words_stand_where_they_stood(rows: str) -> None:
    maps = some_maps()
    one = side()
    found = with_specials(one)
    first_row = [word.nonzero()[:, 0].tolist() for word in found.pieces[0]]
    assert first_row == [[0], [1, 2], [4], [5]]
    assert found.there.tolist() == [[True] * 4, [True, True, True, False]]
    with_them = word_maps_with_specials(maps, one, one, rows=rows)  # type: ignore[arg-type]
    without = word_maps(maps, WORDS, WORDS, rows=rows)  # type: ignore[arg-type]
    torch.testing.assert_close(with_them[0, :, 1:3, 1:3], without[0])
    torch.testing.assert_close(with_them[0, :, 0, 3], maps[0, :, 0, 5])


def test_a_word_that_is_not_there_keeps_its_column() -> None:
    """Word 0 was cut off: [CLS], then its empty column, then word 1, then [SEP]."""
    pieces = torch.zeros(1, 2, 3, dtype=torch.bool)
    pieces[0, 1, 1] = True
    bare = bare_side(torch.ones(1, 3, dtype=torch.long), torch.ones(1, 3) > 0)
    special = torch.tensor([[True, False, True]])
    words = Words(pieces, pieces.any(-1), [Sentence("a b", (Word("a"), Word("b")))])
    found = with_specials(Side(**{**bare.__dict__, "special": special, "words": words}))
    assert found.there.tolist() == [[True, False, True, True]]
    assert [word.nonzero()[:, 0].tolist() for word in found.pieces[0]] == [[0], [], [1], [2]]


def test_a_batch_without_a_word() -> None:
    empty = Words(torch.zeros(2, 0, 6, dtype=torch.bool), torch.zeros(2, 0) > 0, [None, None])
    for rows in ("mean", "first", "max"):
        assert word_maps(some_maps(), empty, empty, rows=rows).shape == (2, 3, 0, 0)  # type: ignore[arg-type]
    assert with_specials(Side(**{**side().__dict__, "words": empty})).there.sum() == 4


def test_unknown_rows_and_sides_without_words_are_told() -> None:
    with pytest.raises(UsageError, match="rows is 'median'; choose mean, first or max"):
        word_maps(some_maps(), WORDS, WORDS, rows="median")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="This side has no words; give a treebank"):
        with_specials(bare_side(REAL.long(), REAL))


def test_words_move_with_their_side() -> None:
    moved = side().to("cpu").words
    assert moved is not None
    assert moved.sentences is WORDS.sentences
    assert len(moved) == 2
