"""The dependency arcs of a batch: who hangs from whom, and under which relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headcount.text.sentence import Word
from headcount.text.words import Words

__all__ = ["ROOT", "Arcs", "arcs_of"]

#: The place of the root's head, which is no word.
ROOT = -1
_UNKNOWN = -2

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
    sentences = [sentence.words or () if sentence else () for sentence in words.sentences]
    flat = [word for sentence in sentences for word in sentence]
    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    row, length = np.repeat(np.arange(len(sizes)), sizes), np.repeat(sizes, sizes)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    head = np.array([_UNKNOWN if word.head is None else word.head - 1 for word in flat], np.int64)
    speaker = place + _marked(flat, place + 1 < length, marks)
    kept = (head >= ROOT) & (head < length) & (head != place)
    # The root has no head that could be missing: ask for the word itself.
    ends = np.stack([place, speaker, np.where(head == ROOT, place, head)])[:, kept]
    kept[kept] = words.there.cpu().numpy()[row[kept], ends].all(axis=0)
    labels = tuple(flat[number].deprel or "_" for number in np.flatnonzero(kept).tolist())
    return Arcs(row[kept], place[kept], speaker[kept], head[kept], length[kept], labels)


def _marked(
    flat: Sequence[Word], followed: NDArray[np.bool_], marks: frozenset[str]
) -> NDArray[np.bool_]:
    """Which words are possessors with a mark behind them; the last of a sentence never is."""
    return np.array(
        [
            word.deprel in _POSSESSIVE and bool(followed[number]) and flat[number + 1].form in marks
            for number, word in enumerate(flat)
        ],
        dtype=bool,
    )
