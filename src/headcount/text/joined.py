"""Sentences put together: words into a text, and two texts into one row's worth of words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headcount.text.sentence import Argument, Multiword, Predicate, Sentence, Span, Word

__all__ = ["joined", "spaced"]


def spaced(words: Iterable[Word], **more: object) -> Sentence:
    """A sentence of words with a space between each two, for data that has no text.

    >>> sentence = spaced([Word("Rain"), Word("fell"), Word(".")])
    >>> sentence.text, [(word.start, word.end) for word in sentence.words]
    ('Rain fell .', [(0, 4), (5, 9), (10, 11)])
    """
    placed, here = [], 0
    for word in words:
        placed.append(replace(word, start=here, end=here + len(word.form)))
        here += len(word.form) + 1
    text = " ".join(word.form for word in placed)
    return Sentence(text, tuple(placed), **more)  # type: ignore[arg-type]


def joined(first: Sentence, second: Sentence) -> Sentence:
    """Two sentences as one: the second's words count on, and so do its characters, after a space.

    Each keeps its own root, so the whole has no single tree.

    >>> both = joined(spaced([Word("Rain", head=0)]), spaced([Word("Go", head=0)]))
    >>> both.text, [(word.form, word.start) for word in both.words]
    ('Rain Go', [('Rain', 0), ('Go', 5)])
    """
    words, letters = len(first.words or ()), len(first.text) + 1
    return Sentence(
        text=f"{first.text} {second.text}",
        words=(
            *(first.words or ()),
            *(_moved(word, words, letters) for word in second.words or ()),
        ),
        multiwords=(*first.multiwords, *(_later(each, words) for each in second.multiwords)),
        comments=first.comments,
        line=first.line,
        clusters=(
            *first.clusters,
            *(tuple(_on(span, words) for span in each) for each in second.clusters),
        ),
        predicates=(*first.predicates, *(_shifted(each, words) for each in second.predicates)),
    )


def _moved(word: Word, words: int, letters: int) -> Word:
    return replace(
        word,
        head=word.head and word.head + words,
        start=None if word.start is None else word.start + letters,
        end=None if word.end is None else word.end + letters,
    )


def _later(multiword: Multiword, words: int) -> Multiword:
    return replace(multiword, first=multiword.first + words, last=multiword.last + words)


def _on(span: Span, words: int) -> Span:
    return Span(span.first + words, span.last + words)


def _shifted(predicate: Predicate, words: int) -> Predicate:
    arguments = tuple(Argument(each.label, _on(each.span, words)) for each in predicate.arguments)
    return replace(predicate, word=predicate.word + words, arguments=arguments)
