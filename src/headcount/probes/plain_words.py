"""The words of a plain sentence, for a parser that is given text and no treebank."""

from __future__ import annotations

import re

from headcount.errors import InputError
from headcount.text.sentence import Sentence, Word

__all__ = ["plain_sentence"]

#: Words, English clitics as treebanks cut them off (do n't, cat 's), and single marks.
_WORD = re.compile(
    r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+(?:[.,]\d+)+|\w+|[^\w\s]", re.IGNORECASE
)


def plain_sentence(text: str) -> Sentence:
    """A sentence cut into words: at spaces, around marks, before English clitics.

    >>> [word.form for word in plain_sentence("The cat's owner didn't pay 3.50!").words]
    ['The', 'cat', "'s", 'owner', 'did', "n't", 'pay', '3.50', '!']
    """
    words = [Word(m.group(), start=m.start(), end=m.end()) for m in _WORD.finditer(text)]
    if not words:
        raise InputError(f"'{text}' has no word; give a sentence.")
    return Sentence(text, tuple(words))
