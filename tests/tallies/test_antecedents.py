"""Antecedents without a model: which mention each rule names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headcount.survey.tallies.coreference import (
    BASELINES,
    PRONOUNS,
    Mention,
    agree,
    before,
    concord_of,
    mentions_of,
)
from headcount.text.sentence import Sentence, Span, Word, spaced

#         0   1   2    3   4      5    6  7     8    9   10     11    12
TEXT = "Mr Hill met Mrs Hill . Hill sang ; the dogs heard her"
SPANS = {
    "Mr Hill": Span(0, 1), "Mrs Hill": Span(3, 4), "Hill": Span(6, 6), "the dogs": Span(9, 10),
    "her": Span(12, 12),
}  # fmt: skip


def passage(*clusters: tuple[str, ...]) -> Sentence:
    found = tuple(tuple(SPANS[name] for name in cluster) for cluster in clusters)
    return replace(spaced([Word(form) for form in TEXT.split()]), clusters=found)


def said(text: str, rule: str) -> str | None:
    mentions = mentions_of(passage(*((name,) for name in SPANS)))
    mention = next(one for one in mentions if one.span == SPANS[text])
    found = BASELINES[rule](mention, before(mention, mentions))
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("mention", "rule", "named"),
    [
        ("her", "nearest", "the dogs"),
        ("her", "head match", None),
        ("her", "rules", "hill"),  # gender unknown, so it agrees, and it is nearer
        ("Hill", "nearest", "mrs hill"),
        ("Hill", "head match", "mrs hill"),
        ("Hill", "rules", "mrs hill"),
        ("the dogs", "rules", "hill"),  # nothing agrees in number: the last sieve
        ("Mr Hill", "nearest", None),
        ("Mr Hill", "rules", None),
    ],
)
def test_what_each_rule_names(mention: str, rule: str, named: str | None) -> None:
    assert said(mention, rule) == named


def test_the_same_words_come_before_a_nearer_head() -> None:
    words = [Word(form) for form in ["the", "cat", "saw", "a", "cat", ";", "the", "cat", "ran"]]
    spans = (Span(0, 1), Span(3, 4), Span(6, 7))
    mentions = mentions_of(replace(spaced(words), clusters=tuple((span,) for span in spans)))
    found = BASELINES["rules"](mentions[2], before(mentions[2], mentions))
    assert found is not None
    assert found.span == spans[0]


def test_what_lies_inside_or_around_is_no_candidate() -> None:
    words = [Word(form) for form in ["Ann", "met", "his", "mother"]]
    clusters = ((Span(0, 0),), (Span(2, 2),), (Span(2, 3),))
    his, mother = mentions_of(replace(spaced(words), clusters=clusters))[1:]
    ann: Mention = mentions_of(replace(spaced(words), clusters=clusters))[0]
    assert before(mother, [ann, his, mother]) == [ann]


def test_what_is_not_known_agrees() -> None:
    they, she = PRONOUNS["they"], PRONOUNS["she"]
    assert not agree(they, she)
    assert agree(PRONOUNS["you"], PRONOUNS["you"])
    assert not agree(PRONOUNS["i"], she)
    name = concord_of([Word("Hill")], Word("Hill"), "proper")
    assert agree(name, she)
    assert not agree(name, they)


@pytest.mark.parametrize(
    ("phrase", "head", "number"),
    [
        ("dogs", Word("dogs", xpos="NNS"), "p"),
        ("dog", Word("dog", xpos="NN"), "s"),
        ("sheep", Word("sheep", feats={"Number": "Plur"}), "p"),
        ("Tom and Ann", Word("Tom"), "p"),
        ("bus", Word("bus"), "s"),
        ("dogs", Word("dogs"), "p"),
        ("ten", Word("ten", xpos="CD"), None),
    ],
)
def test_number(phrase: str, head: Word, number: str | None) -> None:
    words = [Word(form) for form in phrase.split()]
    assert concord_of(words, head, "nominal").number == number
