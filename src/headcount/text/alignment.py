"""Which tokens belong to which word: by their places in the text, never by their spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from headcount.text.account import EncodeReport
from headcount.text.rows import Row
from headcount.text.sentence import Sentence
from headcount.text.words import Words

__all__ = ["Placed", "count_words", "pieces_of", "words_of"]

Pieces = NDArray[np.bool_]
#: An empty place, which shares no character with anything.
_NOWHERE = (-1, -1)


@dataclass(frozen=True)
class Placed:
    """An annotated sentence, and how many tokens each of its words has before any cut."""

    sentence: Sentence
    row: Row
    sizes: NDArray[np.int64] = field(init=False)
    #: How many words have a token in common with another.
    shared: int = field(init=False)

    def __post_init__(self) -> None:
        pieces = pieces_of(self.row, self.sentence)
        object.__setattr__(self, "sizes", pieces.sum(1))
        object.__setattr__(self, "shared", int((pieces & (pieces.sum(0) > 1)).any(1).sum()))

    def pieces(self, row: Row) -> Pieces:
        """The pieces of the words in a row cut from the whole; a torn word has none."""
        pieces = pieces_of(row, self.sentence)
        pieces[pieces.sum(1) != self.sizes] = False
        return pieces


def pieces_of(row: Row, sentence: Sentence) -> Pieces:
    """Bool ``[word, token]``: the tokens that share a character with each word.

    A token of white space alone, such as SentencePiece's ``▁``, opens the word behind it; so
    does a token without a character, the first half of one that was normalised into two.

    >>> from headcount.text.sentence import Word
    >>> sentence = Sentence("Go on", (Word("Go", start=0, end=2), Word("on", start=3, end=5)))
    >>> row = Row([2, 7, 8, 9, 3], [1, 0, 0, 0, 1], places=[None, (0, 2), (2, 4), (4, 5), None])
    >>> pieces_of(row, sentence).astype(int).tolist()
    [[0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    """
    places = [place or _NOWHERE for place in row.places or [None] * len(row.ids)]
    tokens = np.array([_opened(place, sentence.text) for place in places]).reshape(-1, 2)
    words = np.array([_place(word.start, word.end) for word in sentence.words or ()])
    words = words.reshape(-1, 2)
    starts = np.maximum(words[:, :1], tokens[:, 0])
    ends = np.minimum(words[:, 1:], tokens[:, 1])
    return np.asarray(starts < ends)


def count_words(placed: Placed | None, rows: Sequence[Row], report: EncodeReport) -> None:
    """Count a sentence's words into the report, given the rows that were made of it."""
    if placed is None:
        return
    report.words += len(placed.sizes)
    report.unplaced += int((placed.sizes == 0).sum())
    report.shared += placed.shared
    if list(rows) != [placed.row]:
        kept = np.zeros(len(placed.sizes), dtype=bool)
        for row in rows:
            kept |= placed.pieces(row).any(1)
        report.cut += int(((placed.sizes > 0) & ~kept).sum())


def words_of(rows: Sequence[Row], placed: Sequence[Placed | None], real: Pieces) -> Words:
    """The words of padded rows."""
    found = [
        None if each is None else each.pieces(row) for row, each in zip(rows, placed, strict=True)
    ]
    most = max((len(pieces) for pieces in found if pieces is not None), default=0)
    room = np.zeros((len(rows), most, real.shape[1]), dtype=bool)
    for number, pieces in enumerate(found):
        if pieces is not None:
            room[number, : len(pieces)][:, real[number]] = pieces
    sentences = [None if each is None else each.sentence for each in placed]
    padded = torch.from_numpy(room)
    return Words(padded, padded.any(-1), sentences)


def _place(start: int | None, end: int | None) -> tuple[int, int]:
    return _NOWHERE if start is None or end is None else (start, end)


def _opened(place: tuple[int, int], text: str) -> tuple[int, int]:
    """The place of a token; an empty or blank one is drawn out by the character behind it."""
    start, end = place
    return (start, end + 1) if start >= 0 and not text[start:end].strip() else place
