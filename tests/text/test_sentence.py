"""Tests of `text/sentence.py`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import Fault
from headcount.rooms.coreference.files import checked_clusters
from headcount.text.sentence import (
    Argument,
    Form,
    Multiword,
    Pair,
    Predicate,
    Sentence,
    Span,
    Word,
    check_tree,
    divided,
    inside,
    joined,
    place_forms,
    spaced,
    split_words,
    texts_of,
)


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


# ---  -------------------------------------------------------------------------------------------


def test_clusters_come_in_the_order_of_their_first_mentions() -> None:
    skipped: Counter[str] = Counter()
    found = checked_clusters([[[8, 9], [2, 2]], [[5, 6], [0, 3]]], 10, "Text", skipped)
    assert found == ((Span(0, 3), Span(5, 6)), (Span(2, 2), Span(8, 9)))
    assert not skipped


def test_nested_and_crossing_mentions_are_kept() -> None:
    skipped: Counter[str] = Counter()
    found = checked_clusters([[[0, 3], [2, 5]], [[1, 1]]], 6, "Text", skipped)
    assert found == ((Span(0, 3), Span(2, 5)), (Span(1, 1),))
    assert not skipped


FAULTS: list[tuple[Any, str, str]] = [
    ([[[0, 1], [0, 6]]], "has the mention [0, 6]", "mentions outside the text"),
    ([[[0, 1], [-1, 0]]], "has the mention [-1, 0]", "mentions outside the text"),
    ([[[0, 1], [3, 2]]], "has the mention [3, 2]", "mentions outside the text"),
    ([[[0, 1], [1]]], "has the mention [1]", "mentions outside the text"),
    ([[[0, 1], [1.0, 2]]], "has the mention [1.0, 2]", "mentions outside the text"),
    ([[[0, 1], "ab"]], "has the mention ab", "mentions outside the text"),
    ([[[0, 1], 7]], "has the mention 7", "mentions outside the text"),
    ([[[0, 1], [0, 1]]], "has the mention [0, 1] twice", "mentions given twice"),
    ([[[0, 1]], [[0, 1]]], "in two clusters; a mention means one", "mentions in two clusters"),
]


@pytest.mark.parametrize(("clusters", "said", "reason"), FAULTS)
def test_mentions_that_cannot_be(clusters: Any, said: str, reason: str) -> None:
    skipped: Counter[str] = Counter()
    assert checked_clusters(clusters, 6, "Text 1", skipped) == ((Span(0, 1),),)
    assert skipped == {reason: 1}
    with pytest.raises(Fault) as caught:
        checked_clusters(clusters, 6, "Text 1", skipped, strict=True)
    assert str(caught.value).startswith("Text 1 ")
    assert said in str(caught.value)


def test_only_whole_mentions_are_inside() -> None:
    clusters = ((Span(0, 1), Span(4, 5)), (Span(2, 3),), (Span(5, 6),))
    assert inside(clusters, 2, 4) == ((Span(2, 3),), (Span(0, 1),))


# ---  -------------------------------------------------------------------------------------------


ZUM = Sentence(
    "zum See",
    (
        Word("zu", head=3, start=0, end=3),
        Word("dem", head=3, start=0, end=3),
        Word("See", head=0, start=4, end=7),
    ),
    multiwords=(Multiword(1, 2, "zum"),),
    comments={"sent_id": "1"},
    line=4,
    clusters=((Span(1, 2),),),
    predicates=(Predicate(2, "x", (Argument("ARG0", Span(0, 1)),)),),
)


def test_everything_counts_on() -> None:
    both = joined(ZUM, ZUM)
    words = both.words or ()
    assert both.text == "zum See zum See"
    assert [both.text[word.start : word.end] for word in words] == ["zum", "zum", "See"] * 2
    assert [word.head for word in words] == [3, 3, 0, 6, 6, 0]
    assert both.multiwords == (Multiword(1, 2, "zum"), Multiword(4, 5, "zum"))
    assert both.clusters == ((Span(1, 2),), (Span(4, 5),))
    assert both.predicates[1] == Predicate(5, "x", (Argument("ARG0", Span(3, 4)),))
    assert (both.comments, both.line) == ({"sent_id": "1"}, 4)


def test_texts_without_words_take_their_room() -> None:
    found = joined(Sentence("Oh."), ZUM, Sentence("Ah."))
    assert found.text == "Oh. zum See Ah."
    assert [found.text[word.start : word.end] for word in found.words or ()] == [
        "zum",
        "zum",
        "See",
    ]
    assert [word.head for word in found.words or ()] == [3, 3, 0]


def test_words_without_a_head_or_place_stay_so() -> None:
    bare = Sentence("Go", (Word("Go"),))
    _, second = joined(bare, bare).words or ()
    assert (second.head, second.start) == (None, None)


def test_one_alone_is_itself() -> None:
    assert joined(ZUM) == ZUM


def test_spaces_between_words() -> None:
    found = spaced([Word("Rain"), Word(".")], comments={"a": "b"}, line=2)
    assert (found.text, found.comments, found.line) == ("Rain .", {"a": "b"}, 2)


# ---  -------------------------------------------------------------------------------------------


WORDS = st.text(st.characters(blacklist_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6))
def test_joined_forms_are_found_where_they_were_put(forms: list[tuple[str, bool]]) -> None:
    given_ = [Form(*form) for form in forms]
    skipped: Counter[str] = Counter()
    text, places = place_forms(given_, None, skipped)
    assert [text[start:end] for start, end in places] == [form.text for form in given_]
    assert place_forms(given_, text, skipped) == (text, places)
    assert not skipped


def test_a_text_that_disagrees_is_counted() -> None:
    skipped: Counter[str] = Counter()
    for text in ("Go away", "Go", "Go on !!", "Goon"):
        assert place_forms([Form("Go"), Form("on")], text, skipped)[0] == (
            "Goon" if text == "Goon" else "Go on"
        )
    assert skipped == {"text comments that disagree with the words": 3}


def test_a_multiword_token_is_divided_or_shared() -> None:
    assert divided("don't", (2, 7), ["do", "n't"]) == [(2, 4), (4, 7)]
    assert divided("zum", (2, 5), ["zu", "dem"]) == [(2, 5)] * 2
    assert divided("a b", (2, 9), ["a", " b"]) == [(2, 9)] * 2, "the text has it otherwise"


# ---  -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ann's cat.", ["Ann", "'", "s", "cat", "."]),
        ("US$10 – naïve\u00a0", ["US", "$", "10", "–", "naïve"]),
        ("Где?!", ["Где", "?", "!"]),
        ("  \n", []),
    ],
)
def test_runs_of_letters_and_single_signs(text: str, words: list[str]) -> None:
    found = split_words(text)
    assert [word.form for word in found] == words
    assert [text[word.start : word.end] for word in found] == words


# ---  -------------------------------------------------------------------------------------------


def checked(heads: list[int | None]) -> Counter[str]:
    skipped: Counter[str] = Counter()
    check_tree([Word(f"w{n}", head=head) for n, head in enumerate(heads, 1)], "Text 1", skipped)
    return skipped


@pytest.mark.parametrize("heads", [[0], [2, 0], [2, 3, 0, 3], [None, None], []])
def test_trees_and_bare_words_pass(heads: list[int | None]) -> None:
    assert checked(heads) == {}


def test_words_without_a_head_are_counted() -> None:
    assert checked([0, None, 1, None]) == {"words without a head": 2}
    assert checked([2, None]) == {"words without a head": 1}


@pytest.mark.parametrize(
    ("heads", "said", "reason"),
    [
        ([0, 4, 1], "hangs from 4, and there are 3 words", "sentences with a head out of range"),
        ([0, -1], "hangs from -1, and there are 2 words", "sentences with a head out of range"),
        ([0, 0], "Text 1 has 2 roots; a tree has one word", "sentences with several roots"),
        ([0, 2], r"a cycle: word 2 \('w2'\) hangs from itself", "sentences with a cycle"),
        ([0, 3, 4, 2], r"a cycle: word 2 \('w2'\) hangs from itself", "sentences with a cycle"),
        ([2, 3, 2, 0], r"a cycle: word 2 \('w2'\)", "sentences with a cycle"),
        ([1], "a cycle: word 1", "sentences with a cycle"),
    ],
)
def test_what_is_no_tree_is_named(heads: list[int | None], said: str, reason: str) -> None:
    with pytest.raises(Fault, match=said) as caught:
        checked(heads)
    assert caught.value.reason == reason
