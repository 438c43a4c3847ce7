"""Which sentences of a corpus to look at: short, clear, and showing what the heads do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from headcount.text import Corpus, Item, Sentence, sentences_of, texts_of

__all__ = ["chosen_items", "shown_by", "wanted_by"]

#: Words of a text that shows something and can be taken in at a glance.
_SHORTEST, _IDEAL, _LONGEST = 6, 13, 24
#: So many items are looked at; more choice is no better.
_CANDIDATES = 5_000

#: Roles that a repeated word shows.
_REPEATED = {"duplicate", "induction", "retrieval"}


def chosen_items(
    corpus: Corpus, roles: pd.DataFrame | None = None, count: int = 3
) -> list[tuple[int, Item]]:
    """So many items with their places, the most telling first.

    Each next one shows as much as possible of what no earlier one shows: relations that a head
    was found to follow, repeated words, mentions of one entity.

    >>> from headcount.text import read_corpus
    >>> chosen_items(read_corpus(["No.", "The old kettle had been whistling for a minute."]), None)
    [(1, Sentence(text='The old kettle had been whistling for a minute.', ...))]
    """
    wanted = wanted_by(roles)
    left = [(place, item) for place, item in enumerate(_first(corpus)) if _fits(item)]
    left = left or [_shortest(corpus)]
    found: list[tuple[int, Item]] = []
    seen: set[str] = set()
    while left and len(found) < count:
        best = max(left, key=lambda one: _worth(one, wanted - seen))
        found.append(best)
        left.remove(best)
        seen |= shown_by(best[1])
    return found


def wanted_by(roles: pd.DataFrame | None) -> set[str]:
    """What sentences should show, going by the verdicts on heads.

    >>> sorted(wanted_by(pd.DataFrame({"role": ["syntactic", "coreference"],
    ...                                "label": ["nsubj dep->head", "antecedent"]})))
    ['mentions', 'nsubj']
    """
    if roles is None or not len(roles):
        return set()
    wanted = {label.split()[0] for label in roles.loc[roles["role"] == "syntactic", "label"]}
    if "coreference" in set(roles["role"]):
        wanted.add("mentions")
    if _REPEATED & set(roles["role"]):
        wanted.add("repeated")
    return wanted


def shown_by(item: Item) -> set[str]:
    """What a sentence shows: relations of its tree, repeated words, mentions of one entity."""
    sentence = sentences_of(item)[0]
    shown = {"repeated"} if _repeats(texts_of(item)[0].lower().split()) else set()
    if sentence is None:
        return shown
    shown |= {str(word.deprel) for word in sentence.words or () if word.deprel}
    shown |= {relation.partition(":")[0] for relation in shown}
    return shown | ({"mentions"} if _mentions(sentence) else set())


def _worth(one: tuple[int, Item], wanted: Collection[str]) -> tuple[int, int, int]:
    """The more the better: what it shows, a good length, an early place."""
    place, item = one
    return len(shown_by(item) & set(wanted)), -abs(_words(item) - _IDEAL), -place


def _fits(item: Item) -> bool:
    return all(_SHORTEST <= len(text.split()) <= _LONGEST for text in texts_of(item))


def _words(item: Item) -> int:
    return len(texts_of(item)[0].split())


def _first(corpus: Corpus) -> Iterable[Item]:
    return (item for item, _ in zip(corpus, range(_CANDIDATES), strict=False))


def _shortest(corpus: Corpus) -> tuple[int, Item]:
    """Where no text is of a good length, the one nearest to it."""
    return min(enumerate(_first(corpus)), key=lambda one: abs(_words(one[1]) - _IDEAL))


def _repeats(words: Sequence[str]) -> bool:
    long = [word.strip(".,;:!?\"'") for word in words if len(word) > 3]
    return len(set(long)) < len(long)


def _mentions(sentence: Sentence) -> bool:
    return any(len(cluster) > 1 for cluster in sentence.clusters)
