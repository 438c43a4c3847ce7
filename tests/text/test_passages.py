from __future__ import annotations

import pytest

from headcount.errors import UsageError
from headcount.text.coreference import split_passages
from headcount.text.sentence import Sentence, Span, Word, spaced

TEXTS = ["Ann left .", "She ran home .", "Oh .", "Bo met her there , and she smiled ."]


def sentences() -> list[Sentence]:
    return [
        spaced([Word(form, head=0 if place == 0 else 1) for place, form in enumerate(text.split())])
        for text in TEXTS
    ]


def test_whole_sentences_up_to_so_many_words() -> None:
    clusters = ((Span(0, 0), Span(3, 3), Span(11, 11)), (Span(9, 9),))
    found = list(split_passages(sentences(), clusters, 7, "tale"))
    assert [each.text for each in found] == [f"{TEXTS[0]} {TEXTS[1]}", TEXTS[2], TEXTS[3]]
    assert [each.clusters for each in found] == [
        ((Span(0, 0), Span(3, 3)),),
        (),
        ((Span(2, 2),), (Span(0, 0),)),
    ]
    assert [each.comments["passage"] for each in found] == ["0", "1", "2"]
    assert {each.comments["doc"] for each in found} == {"tale"}


def test_words_stand_where_the_text_has_them_and_heads_stay_in_their_sentence() -> None:
    (found,) = split_passages(sentences(), (), 99)
    words = found.words or ()
    assert [found.text[word.start : word.end] for word in words] == found.text.split()
    assert [word.head for word in words][:7] == [0, 1, 1, 0, 4, 4, 4]
    assert not found.has_tree


def test_a_passage_has_a_word_at_least() -> None:
    with pytest.raises(UsageError, match="A passage has 0 words; it must have 1 or more"):
        list(split_passages(sentences(), (), 0))
