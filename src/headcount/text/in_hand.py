"""Texts in hand: strings, pairs, or annotated sentences, as a caller has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from headcount.errors import InputError
from headcount.text.placing import Form, place
from headcount.text.sentence import Item, Pair, Sentence, texts_of

__all__ = ["read_in_hand"]


def read_in_hand(items: Sequence[Any], skipped: Counter[str]) -> Iterator[Item]:
    """The items as sentences or pairs; blank texts are counted.

    A pair is two strings, two `Sentence`s, or one of each. Words without a place in their text
    are looked up there.

    >>> list(read_in_hand([("Rain.", "Regen.")], Counter()))
    [Pair(source='Rain.', target='Regen.', line=1, annotated=(None, None))]
    """
    for number, item in enumerate(items, start=1):
        found = _item(item, number)
        if all(text.strip() for text in texts_of(found)):
            yield found
        elif isinstance(found, Pair):
            side = "target" if found.source.strip() else "source"
            raise InputError(f"Pair {number} of the texts in hand has no {side}.")
        else:
            skipped["blank lines"] += 1


def _item(item: Any, number: int) -> Item:
    if isinstance(item, Pair):
        first, second = (_placed(each, number) for each in item.annotated)
        return replace(item, annotated=(first, second))
    if isinstance(item, Sentence | str):
        return _sentence(item, number)
    if isinstance(item, tuple | list) and all(isinstance(part, str | Sentence) for part in item):
        if len(item) == 2:
            return _pair(item, number)
        raise InputError(
            f"Item {number} of the texts in hand has {len(item)} parts; a pair has two."
        )
    raise InputError(
        f"Item {number} of the texts in hand is a {type(item).__name__}; a corpus holds strings, "
        "pairs of strings, or Sentences."
    )


def _sentence(item: Sentence | str, number: int) -> Sentence:
    if isinstance(item, str):
        return Sentence(item, line=number)
    found = _placed(item, number)
    assert found is not None  # only nothing gives nothing
    return found


def _pair(parts: Sequence[Sentence | str], number: int) -> Pair:
    first, second = (_sentence(part, number) for part in parts)
    annotated = (first if first.words else None, second if second.words else None)
    return Pair(first.text, second.text, number, annotated)


def _placed(sentence: Sentence | None, number: int) -> Sentence | None:
    """The sentence with a place for every word, found in its text where none was given."""
    if sentence is None or all(word.start is not None for word in sentence.words or ()):
        return sentence
    words = sentence.words or ()
    lost: Counter[str] = Counter()
    _, places = place([Form(word.form) for word in words], sentence.text, lost)
    if lost:
        raise InputError(
            f"Item {number} of the texts in hand has words that do not make up its text, "
            f"'{sentence.text}'; give each word its start and end."
        )
    found = zip(words, places, strict=True)
    return replace(
        sentence, words=tuple(replace(word, start=start, end=end) for word, (start, end) in found)
    )
