"""The documents of a treebank, by its ``newdoc`` comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headcount.text.sentence import Sentence

__all__ = ["documents"]


def documents(sentences: Iterable[Sentence]) -> Iterator[tuple[str, list[Sentence]]]:
    """Each document's name and sentences; without a ``newdoc`` all is one.

    >>> texts = [Sentence("A", comments={"newdoc id": "x"}), Sentence("B")]
    >>> [(name, len(found)) for name, found in documents(texts)]
    [('x', 2)]
    """
    name, found = "", list[Sentence]()
    for sentence in sentences:
        opened = [key for key in sentence.comments if key.split()[0] == "newdoc"]
        if opened and found:
            yield name, found
            found = []
        if opened:
            name = sentence.comments[opened[0]]
        found.append(sentence)
    if found:
        yield name, found
