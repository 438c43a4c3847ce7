"""Sentences put together: words into a text, and several texts into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from headcount.text.sentence import Argument, Multiword, Predicate, Sentence, Span, Word

__all__ = ["joined", "spaced"]


def spaced(
    words: Iterable[Word],
    *,
    predicates: tuple[Predicate, ...] = (),
    comments: Mapping[str, str] | None = None,
    line: int | None = None,
) -> Sentence:
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
    found = Sentence(text, tuple(placed), line=line, predicates=predicates)
    return found if comments is None else replace(found, comments=comments)


def joined(*sentences: Sentence) -> Sentence:
    """Sentences as one text with spaces between; words and characters count on.

    Each keeps its own root, so the whole has several. Comments are the first one's.

    >>> both = joined(spaced([Word("Rain", head=0)]), spaced([Word("Go", head=0)]))
    >>> both.text, [(word.form, word.start) for word in both.words]
    ('Rain Go', [('Rain', 0), ('Go', 5)])
    """
    words: list[Word] = []
    multiwords: list[Multiword] = []
    clusters: list[tuple[Span, ...]] = []
    predicates: list[Predicate] = []
    letters = 0
    for each in sentences:
        before = len(words)
        multiwords += [_later(multiword, before) for multiword in each.multiwords]
        clusters += [tuple(_on(span, before) for span in cluster) for cluster in each.clusters]
        predicates += [_shifted(predicate, before) for predicate in each.predicates]
        words += [_moved(word, before, letters) for word in each.words or ()]
        letters += len(each.text) + 1
    return Sentence(
        text=" ".join(each.text for each in sentences),
        words=tuple(words),
        multiwords=tuple(multiwords),
        comments=sentences[0].comments,
        line=sentences[0].line,
        clusters=tuple(clusters),
        predicates=tuple(predicates),
    )


def _moved(word: Word, words: int, letters: int) -> Word:
    if not letters:
        return word
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
