from __future__ import annotations

from headcount.text.sentence import (
    Argument,
    Multiword,
    Predicate,
    Sentence,
    Span,
    Word,
    joined,
    spaced,
)

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
