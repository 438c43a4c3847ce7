from __future__ import annotations

import pytest

from headcount.text.sentence import Pair, Sentence, Word, texts_of


def tree(*heads: int | None) -> Sentence:
    return Sentence("x", tuple(Word("x", head=head) for head in heads))


def test_a_plain_sentence_has_no_words() -> None:
    assert Sentence("Rain fell.").words is None
    assert not Sentence("Rain fell.").has_tree


def test_texts_of_a_sentence_and_of_a_pair() -> None:
    assert texts_of(Sentence("one")) == ("one",)
    assert texts_of(Pair("one", "two")) == ("one", "two")


def test_where_an_item_stood_is_no_part_of_what_it_is() -> None:
    assert Sentence("one", line=3) == Sentence("one", line=9)
    assert Pair("one", "two", line=3) == Pair("one", "two")


@pytest.mark.parametrize("heads", [(0,), (0, 1), (2, 0, 2, 3), (2, 3, 0)])
def test_trees(heads: tuple[int, ...]) -> None:
    assert tree(*heads).has_tree


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ((1, 0), "a word is its own head"),
        ((0, 0), "two roots"),
        ((2, 1), "no root"),
        ((0, 3, 2), "a ring beside the root"),
        ((0, 7), "a head beyond the sentence"),
        ((0, -1), "a negative head"),
        ((0, None), "a word without a head"),
    ],
)
def test_no_trees(heads: tuple[int | None, ...], fault: str) -> None:
    assert not tree(*heads).has_tree, fault
