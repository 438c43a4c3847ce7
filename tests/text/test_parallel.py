from __future__ import annotations

import pytest

from headcount.errors import InputError
from headcount.text.corpus import read_corpus, side_by_side
from headcount.text.sentence import Pair, Sentence, Word, spaced


def numbered(number: str, *forms: str) -> Sentence:
    return spaced([Word(form) for form in forms], comments={"sent_id": number})


def test_each_side_keeps_its_words() -> None:
    english = read_corpus([numbered("1", "Rain", "."), Sentence("Go!")])
    german = read_corpus([numbered("1", "Regen", "."), Sentence("Geh!")])
    found = side_by_side(english, german)
    first, second = found
    assert isinstance(first, Pair)
    assert isinstance(second, Pair)
    assert (first.source, first.target) == ("Rain .", "Regen .")
    assert [each and [word.form for word in each.words or ()] for each in first.annotated] == [
        ["Rain", "."],
        ["Regen", "."],
    ]
    assert second.annotated == (None, None)
    assert found.paired
    assert found.annotated


def test_corpora_that_do_not_belong_together_are_refused() -> None:
    one, two = read_corpus([numbered("1", "Rain")]), read_corpus([numbered("2", "Regen")])
    with pytest.raises(InputError, match="The sentences 1 and 2 stand side by side"):
        side_by_side(one, two)
    with pytest.raises(InputError, match="has 1 sentences and texts in hand has 2; side by side"):
        side_by_side(one, read_corpus(["a", "b"]))
    with pytest.raises(InputError, match="texts in hand holds pairs already"):
        side_by_side(one, read_corpus([("a", "b")]))
