"""What a corpus is made of: a sentence, with or without its words, or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "Argument",
    "Item",
    "Multiword",
    "Pair",
    "Predicate",
    "Sentence",
    "Span",
    "Word",
    "sentences_of",
    "texts_of",
]


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word, with what a treebank says of it.

    `head` counts words from 1, as CoNLL-U does; 0 is the root and None means not annotated.
    `start` and `end` are the word's place in the sentence's text, in characters.
    """

    form: str
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    feats: Mapping[str, str | None] = field(default_factory=dict)
    head: int | None = None
    deprel: str | None = None
    misc: Mapping[str, str | None] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Multiword:
    """Several words written as one, such as German *zum*; words counted from 1, both ends in."""

    first: int
    last: int
    form: str


class Span(NamedTuple):
    """Words of a sentence from `first` to `last`, counted from 0, both ends in.

    >>> Span(2, 4).last
    4
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Argument:
    """What a predicate says something of: a label such as ARG0, and its words."""

    label: str
    span: Span


@dataclass(frozen=True, slots=True)
class Predicate:
    """A word that takes arguments; `word` is counted from 0, `sense` is its frame or roleset."""

    word: int
    sense: str | None = None
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text, or a passage; `words` when it comes from a treebank or a parser.

    `clusters` are the mentions of each entity (coreference), in the order of the text;
    `predicates` the verbs, and nouns, whose arguments are known.

    >>> Sentence("Rain fell.").words is None
    True
    """

    text: str
    words: tuple[Word, ...] | None = None
    multiwords: tuple[Multiword, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)
    clusters: tuple[tuple[Span, ...], ...] = ()
    predicates: tuple[Predicate, ...] = ()

    @property
    def has_tree(self) -> bool:
        """Whether the words form one tree: one root, and every word hangs from it.

        >>> Sentence("Go on", (Word("Go", head=0), Word("on", head=1))).has_tree
        True
        >>> Sentence("Go on", (Word("Go", head=2), Word("on", head=1))).has_tree
        False
        """
        heads = [word.head for word in self.words or ()]
        return heads.count(0) == 1 and all(
            _reaches_root(number, heads) for number in range(1, len(heads) + 1)
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts: source and target for a translator, text and second text for an encoder.

    `annotated` holds the same two texts with their words, where those are known.

    >>> Pair("Rain.", "Regen.").target
    'Regen.'
    """

    source: str
    target: str
    line: int | None = field(default=None, compare=False)
    annotated: tuple[Sentence | None, Sentence | None] = (None, None)


Item = Sentence | Pair


def texts_of(item: Item) -> tuple[str, ...]:
    """The texts of a sentence (one) or a pair (two).

    >>> texts_of(Pair("Rain.", "Regen."))
    ('Rain.', 'Regen.')
    """
    return (item.text,) if isinstance(item, Sentence) else (item.source, item.target)


def sentences_of(item: Item) -> tuple[Sentence | None, ...]:
    """The annotated sentences of an item, one a text; None where the words are not known.

    >>> sentences_of(Sentence("Rain.")), sentences_of(Pair("Rain.", "Regen."))
    ((None,), (None, None))
    """
    found = (item,) if isinstance(item, Sentence) else item.annotated
    return tuple(each if each is not None and each.words else None for each in found)


def _reaches_root(number: int, heads: list[int | None]) -> bool:
    """Whether climbing from a word ends at the root within as many steps as there are words."""
    here: int | None = number
    for _ in heads:
        if here is None or not 0 < here <= len(heads):
            return False
        here = heads[here - 1]
        if here == 0:
            return True
    return False
