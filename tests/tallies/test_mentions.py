"""Mentions: their head words, their kinds, and spans that cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headcount.survey.tallies.coreference import head_word, mentions_of
from headcount.text.sentence import Span, Word, spaced


@pytest.mark.parametrize(
    ("phrase", "head"),
    [
        ("her", "her"),
        ("the old mayor", "mayor"),
        ("the mayor of York", "mayor"),
        ("Ann Hill , the mayor", "Hill"),
        ("a man who sings", "man"),
        ("Ann 's", "Ann"),
        ("the cats ’", "cats"),
        ("Tom and Ann", "Tom"),
        ("that", "that"),
        ("of late", "late"),
    ],
)
def test_without_a_tree_the_last_word_before_what_follows_the_noun(phrase: str, head: str) -> None:
    words = [Word(form) for form in ["Yes", *phrase.split(), "ran"]]
    assert words[head_word(words, Span(1, len(words) - 2))].form == head


def test_with_a_tree_the_word_that_hangs_outside() -> None:
    words = [
        Word("mayor", head=4), Word("of", head=3), Word("York", head=1), Word("left", head=0),
    ]  # fmt: skip
    assert head_word(words, Span(0, 2)) == 0
    assert head_word(words, Span(2, 2)) == 2


def test_punctuation_is_no_head_and_half_a_tree_is_none() -> None:
    words = [Word('"', upos="PUNCT", head=3), Word("Emma", upos="PROPN", head=3), Word("x", head=0)]
    assert head_word(words, Span(0, 1)) == 1
    words[1] = Word("Emma", upos="PROPN")
    assert head_word(words, Span(0, 1)) == 1


def test_a_tree_that_turns_in_a_circle_falls_back_on_the_rule() -> None:
    words = [Word("the", head=2), Word("mayor", head=1), Word("left", head=0)]
    assert head_word(words, Span(0, 1)) == 1


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (Word("it", upos="PRON"), "pronoun"),
        (Word("his", xpos="PRP$"), "pronoun"),
        (Word("who", xpos="WP"), "pronoun"),
        (Word("York", upos="PROPN"), "proper"),
        (Word("Alps", xpos="NNPS"), "proper"),
        (Word("Mayor", upos="NOUN"), "nominal"),
        (Word("She"), "pronoun"),
        (Word("York"), "proper"),
        (Word("mayor"), "nominal"),
    ],
)
def test_kinds_by_tag_or_by_letters(word: Word, kind: str) -> None:
    sentence = replace(spaced([Word("Well"), word]), clusters=((Span(1, 1),),))
    assert mentions_of(sentence)[0].kind == kind


def test_a_capital_that_starts_a_sentence_is_no_name_if_the_word_is_known() -> None:
    words = [Word(form) for form in ["Cats", "ran", ".", "Cats", "hid", ";", "two", "cats"]]
    sentence = replace(spaced(words), clusters=((Span(0, 0), Span(3, 3)),))
    assert [mention.kind for mention in mentions_of(sentence)] == ["nominal", "nominal"]
    alone = replace(spaced(words[:3]), clusters=((Span(0, 0),),))
    assert mentions_of(alone)[0].kind == "proper"


def test_spans_outside_the_text_and_doubles_are_left_out() -> None:
    clusters = ((Span(0, 0), Span(0, 0), Span(1, 0), Span(2, 9), Span(-1, 0)), ())
    sentence = replace(spaced([Word("Ann"), Word("ran")]), clusters=clusters)
    assert [mention.span for mention in mentions_of(sentence)] == [Span(0, 0)]
    assert mentions_of(spaced([Word("Ann")])) == []
