"""A sentence as a probe sees it: its gold heads, its words' vectors, the maps between its words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.text.sentence import Sentence, Word

__all__ = ["UNKNOWN", "Example", "gold_heads", "is_scored"]

#: The head of a word that the treebank says nothing of.
UNKNOWN = -1


@dataclass(frozen=True)
class Example:
    """One sentence of n words; candidates are ROOT, 0, and the words from 1 to n."""

    #: Which item of the corpus.
    index: int
    forms: tuple[str, ...]
    #: Gold heads ``[n]``: 0 for the root, `UNKNOWN` where there is none.
    heads: Tensor
    #: Bool ``[n]``: counts for the UAS.
    scored: Tensor
    #: Rows ``[n]`` of the table of vectors; 0 where a word has none.
    words: Tensor
    #: ``[head, 2 + n, 2 + n]``: start, end, then the words; None where no map is looked at.
    maps: Tensor | None = None

    def __len__(self) -> int:
        return len(self.forms)


def gold_heads(sentence: Sentence) -> Tensor:
    """The heads that the treebank gives, one a word.

    >>> gold_heads(Sentence("Go on", (Word("Go", head=0), Word("on", head=7)))).tolist()
    [0, -1]
    """
    words = sentence.words or ()
    return torch.tensor([_head(word, len(words)) for word in words], dtype=torch.long)


def is_scored(words: Iterable[Word], heads: Tensor) -> Tensor:
    """Whether a word counts: it has a head, and is no punctuation; the root does count."""
    marks = [(word.deprel or "").split(":")[0] == "punct" for word in words]
    return (heads != UNKNOWN) & ~torch.tensor(marks, dtype=torch.bool)


def _head(word: Word, words: int) -> int:
    return UNKNOWN if word.head is None or not 0 <= word.head <= words else word.head
