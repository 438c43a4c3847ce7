from __future__ import annotations

from collections import Counter

import pytest

from headcount.errors import InputError
from headcount.text.corpus import read_in_hand
from headcount.text.sentence import Pair, Sentence, Word

RAIN = Sentence("Rain fell.", (Word("Rain"), Word("fell"), Word(".")))


def test_words_without_a_place_are_looked_up() -> None:
    (found,) = read_in_hand([RAIN], Counter())
    assert isinstance(found, Sentence)
    assert [(word.start, word.end) for word in found.words or ()] == [(0, 4), (5, 9), (9, 10)]
    (pair,) = read_in_hand([Pair("Rain fell.", "x", annotated=(RAIN, None))], Counter())
    assert isinstance(pair, Pair)
    assert pair.annotated == (found, None)


def test_words_of_another_text_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        list(read_in_hand(["x", Sentence("Snow fell.", RAIN.words)], Counter()))
    assert str(caught.value) == (
        "Item 2 of the texts in hand has words that do not make up its text, 'Snow fell.'; give "
        "each word its start and end."
    )


def test_a_pair_of_sentences_keeps_their_words() -> None:
    (found,) = read_in_hand([(RAIN, "Regen fiel.")], Counter())
    assert isinstance(found, Pair)
    assert (found.source, found.target) == ("Rain fell.", "Regen fiel.")
    first, second = found.annotated
    assert first is not None
    assert second is None
    assert first.words is not None
    assert first.words[1].start == 5
