"""The dependency arcs of a batch: who hangs from whom, and under which relation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headcount.text.sentence import Sentence, Word
from headcount.text.words import Words

__all__ = ["ROOT", "Arcs", "arcs_of"]

#: The place of the root's head, which is no word.
ROOT = -1

#: Clark's relation and its name in Universal Dependencies.
_POSSESSIVE = ("poss", "nmod:poss")
#: The word after a possessor: in Clark et al.'s program, and as treebanks write it.
CLARKS_MARKS = frozenset({"'s", "s'"})
MARKS = CLARKS_MARKS | {"’s", "s’", "'", "’"}

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Arcs:
    """Arcs one after another; places are words of a sentence, counted from 0."""

    #: Row of the batch.
    row: Places
    dependent: Places
    #: Whose prediction counts: the dependent, or the 's behind a possessor.
    speaker: Places
    #: `ROOT` for the root.
    head: Places
    #: Number of words of the sentence.
    length: Places
    #: The relation, as the treebank writes it.
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


def arcs_of(words: Words, marks: frozenset[str] = MARKS) -> Arcs:
    """The arcs whose words are there; what is not annotated, or points outside, is no arc.

    `marks` are the forms behind a possessor that speak for it (Clark et al. 2019, section 4.2:
    heads attend from 's, not from the possessor); an empty set turns that rule off.
    """
    there = words.there.cpu().numpy()
    found = [
        arc
        for row, sentence in enumerate(words.sentences)
        if sentence is not None
        for arc in _arcs(row, sentence, marks)
        if _all_there(there[row], arc)
    ]
    numbers = np.array([arc[:-1] for arc in found], dtype=np.int64).reshape(-1, 5)
    row, dependent, speaker, head, length = numbers.T
    return Arcs(row, dependent, speaker, head, length, tuple(arc[-1] for arc in found))


Arc = tuple[int, int, int, int, int, str]


def _arcs(row: int, sentence: Sentence, marks: frozenset[str]) -> Iterator[Arc]:
    words = sentence.words or ()
    for place, word in enumerate(words):
        if word.head is not None and 0 <= word.head <= len(words) and word.head != place + 1:
            speaker = place + _is_marked(words, place, marks)
            yield row, place, speaker, word.head - 1, len(words), word.deprel or "_"


def _is_marked(words: Sequence[Word], place: int, marks: frozenset[str]) -> bool:
    """Whether a possessor's mark follows; the last word has nothing behind it."""
    following = words[place + 1].form if place + 1 < len(words) else ""
    return words[place].deprel in _POSSESSIVE and following in marks


def _all_there(there: NDArray[np.bool_], arc: Arc) -> bool:
    _, dependent, speaker, head, _, _ = arc
    return bool(there[dependent] and there[speaker] and (head == ROOT or there[head]))
