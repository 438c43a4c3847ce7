"""Words of a plain text, where no treebank and no parser says what they are."""

from __future__ import annotations

import re

from headcount.text.sentence import Word

__all__ = ["split_words"]

# Letters and digits that stand together are a word, and so is every other sign.
_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text, each with its place: runs of letters and digits, and single signs.

    >>> [(word.form, word.start) for word in split_words("Ann's cat.")]
    [('Ann', 0), ("'", 3), ('s', 4), ('cat', 6), ('.', 9)]
    """
    return tuple(
        Word(found[0], start=found.start(), end=found.end()) for found in _WORD.finditer(text)
    )
