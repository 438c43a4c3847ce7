"""What a corpus is made of: a sentence, with or without its words, or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Item", "Multiword", "Pair", "Sentence", "Word", "texts_of"]


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


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text; `words` when it comes from a treebank.

    >>> Sentence("Rain fell.").words is None
    True
    """

    text: str
    words: tuple[Word, ...] | None = None
    multiwords: tuple[Multiword, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)

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

    >>> Pair("Rain.", "Regen.").target
    'Regen.'
    """

    source: str
    target: str
    line: int | None = field(default=None, compare=False)


Item = Sentence | Pair


def texts_of(item: Item) -> tuple[str, ...]:
    """The texts of a sentence (one) or a pair (two).

    >>> texts_of(Pair("Rain.", "Regen."))
    ('Rain.', 'Regen.')
    """
    return (item.text,) if isinstance(item, Sentence) else (item.source, item.target)


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
