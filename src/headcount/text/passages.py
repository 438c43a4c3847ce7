"""Documents cut into passages: whole sentences, so many words, with the clusters inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headcount.errors import UsageError
from headcount.text.clusters import Clusters, inside
from headcount.text.joined import joined
from headcount.text.sentence import Sentence

__all__ = ["PASSAGE", "passages"]

#: Words of a passage, as many as Clark et al. 2019 (section 4.3) cut documents to.
PASSAGE = 128


def passages(
    sentences: Sequence[Sentence], clusters: Clusters, most: int = PASSAGE, doc: str = ""
) -> Iterator[Sentence]:
    """A document's passages of at most `most` words; a longer sentence is a passage of its own.

    Words and mentions count from the start of their passage, and heads stay within sentences, so
    a passage has a root for every sentence. An entity keeps the mentions that are in the passage,
    be it one.

    >>> from headcount.text.joined import spaced
    >>> from headcount.text.sentence import Span, Word
    >>> texts = [spaced(map(Word, text.split())) for text in ("Ann left .", "She ran .", "Oh .")]
    >>> found = list(passages(texts, ((Span(0, 0), Span(3, 3)),), most=6))
    >>> [(each.text, each.clusters) for each in found]
    [('Ann left . She ran .', ((Span(first=0, last=0), Span(first=3, last=3)),)), ('Oh .', ())]
    """
    if most < 1:
        raise UsageError(f"A passage has {most} words; it must have 1 or more.")
    start = 0
    for number, group in enumerate(_groups(sentences, most)):
        whole = joined(*group)
        count = len(whole.words or ())
        yield replace(
            whole,
            clusters=inside(clusters, start, count),
            comments={**whole.comments, "doc": doc, "passage": str(number)},
        )
        start += count


def _groups(sentences: Sequence[Sentence], most: int) -> Iterator[list[Sentence]]:
    group: list[Sentence] = []
    room = most
    for sentence in sentences:
        size = len(sentence.words or ())
        if group and size > room:
            yield group
            group, room = [], most
        group.append(sentence)
        room -= size
    if group:
        yield group
