"""Words closed up: the maps between those that are there stay the same."""

from __future__ import annotations

import torch
from trees import tree, words_of

from headcount.rooms.words.counts import compact_words, word_maps
from headcount.text.words import Words


def test_maps_between_the_words_that_are_there_stay() -> None:
    whole = words_of([tree("a b c d e"), tree("f g")])
    cut = whole.there.clone()
    cut[0, [0, 3]] = False
    words = Words(whole.pieces & cut[..., None], cut, whole.sentences)
    maps = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    wide, close = word_maps(maps, words, words), compact_words(words)
    narrow, places = word_maps(maps, close, close), cut.long().cumsum(1) - 1
    assert narrow.shape == (2, 3, 3, 3)
    assert close.there.tolist() == [[True, True, True], [True, True, False]]
    for row, there in enumerate(cut):
        for i in torch.nonzero(there).flatten():
            for j in torch.nonzero(there).flatten():
                new = narrow[row, :, places[row, i], places[row, j]]
                assert torch.equal(new, wide[row, :, i, j])


def test_a_batch_without_words() -> None:
    empty = Words(torch.zeros(2, 0, 4, dtype=torch.bool), torch.zeros(2, 0, dtype=torch.bool), [])
    assert compact_words(Words(empty.pieces, empty.there, [None, None])).pieces.shape == (2, 0, 4)
