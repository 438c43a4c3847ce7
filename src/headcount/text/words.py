"""Words instead of pieces: which tokens a word has, and attention between words.

Clark et al. 2019, section 4.1: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.text.sentence import Sentence
from headcount.text.spans import EncodeReport, TokenRow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


# --- Words instead of pieces --------------------------------------------------------------------

#: How the rows of a word's pieces become one row.
Rows = Literal["mean", "first", "max"]


@dataclass(frozen=True)
class Words:
    """The words of one side of a batch.

    Word k of a row's sentence is column k of `pieces`, also in a window of that sentence. Where
    two words are written as one (German *zum*) a token may belong to both.
    """

    #: Bool ``[batch, word, token]``: which tokens belong to a word.
    pieces: Tensor
    #: Bool ``[batch, word]``: the word has all its tokens in this row. False for padding, and
    #: for a word without a token, cut off, or torn between two windows: that has no piece here.
    there: Tensor
    #: The annotated sentence of each row.
    sentences: list[Sentence | None]

    def __len__(self) -> int:
        return len(self.sentences)

    @cached_property
    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Of each row, words and tokens ``[pair]`` that belong together, in the order of words."""
        return [row.nonzero(as_tuple=True) for row in self.pieces]

    def to(self, device: torch.device | str) -> Words:
        """The same words on a device."""
        return replace(
            self,
            pieces=self.pieces.to(device, non_blocking=True),
            there=self.there.to(device, non_blocking=True),
        )


# --- Which tokens belong to which word ----------------------------------------------------------

Pieces = NDArray[np.bool_]
#: An empty place, which shares no character with anything.
_NOWHERE = (-1, -1)


@dataclass(frozen=True)
class Placed:
    """An annotated sentence, and how many tokens each of its words has before any cut."""

    sentence: Sentence
    row: TokenRow
    sizes: NDArray[np.int64] = field(init=False)
    #: How many words have a token in common with another.
    shared: int = field(init=False)

    def __post_init__(self) -> None:
        pieces = pieces_of(self.row, self.sentence)
        object.__setattr__(self, "sizes", pieces.sum(1))
        object.__setattr__(self, "shared", int((pieces & (pieces.sum(0) > 1)).any(1).sum()))

    def pieces(self, row: TokenRow) -> Pieces:
        """The pieces of the words in a row cut from the whole; a torn word has none."""
        pieces = pieces_of(row, self.sentence)
        pieces[pieces.sum(1) != self.sizes] = False
        return pieces


def pieces_of(row: TokenRow, sentence: Sentence) -> Pieces:
    """Bool ``[word, token]``: the tokens that share a character with each word.

    A token of white space alone, such as SentencePiece's ``▁``, opens the word behind it; so
    does a token without a character, the first half of one that was normalised into two.

    >>> from headcount.text.sentence import Word
    >>> sentence = Sentence("Go on", (Word("Go", start=0, end=2), Word("on", start=3, end=5)))
    >>> row = TokenRow([2, 7, 8, 9, 3], [1, 0, 0, 0, 1], places=[
    ...     None, (0, 2), (2, 4), (4, 5), None])
    >>> pieces_of(row, sentence).astype(int).tolist()
    [[0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    """
    places = [place or _NOWHERE for place in row.places or [None] * len(row.ids)]
    tokens = np.array([_opened(place, sentence.text) for place in places]).reshape(-1, 2)
    words = np.array(
        [
            _NOWHERE if None in (word.start, word.end) else (word.start, word.end)
            for word in sentence.words or ()
        ]
    )
    words = words.reshape(-1, 2)
    starts = np.maximum(words[:, :1], tokens[:, 0])
    ends = np.minimum(words[:, 1:], tokens[:, 1])
    return np.asarray(starts < ends)


def count_words(placed: Placed | None, rows: Sequence[TokenRow], report: EncodeReport) -> None:
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


def words_of(rows: Sequence[TokenRow], placed: Sequence[Placed | None], real: Pieces) -> Words:
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


def _opened(place: tuple[int, int], text: str) -> tuple[int, int]:
    """The place of a token; an empty or blank one is drawn out by the character behind it."""
    start, end = place
    return (start, end + 1) if start >= 0 and not text[start:end].strip() else place


# --- What each token of a vocabulary is ---------------------------------------------------------
# Looked up once a token id and remembered, so that a corpus costs table lookups only.

_SEEN, _PUNCTUATION, _STOP = 1, 2, 4
# Decoders treat a first token apart (they drop its marker or keep it as text), so every token
# is read behind this one.
_BEFORE = "a"


def is_punctuation(text: str) -> bool:
    """Whether a text is all punctuation: one or more characters of Unicode's P categories.

    >>> is_punctuation("..."), is_punctuation("»"), is_punctuation("$"), is_punctuation("")
    (True, True, False, False)
    """
    return bool(text) and all(unicodedata.category(letter)[0] == "P" for letter in text)


def is_stop(text: str) -> bool:
    """Whether a text is a full stop or a comma, the punctuation that Clark et al. count.

    >>> is_stop("."), is_stop(";")
    (True, False)
    """
    return text in (".", ",")


def own_text(token: str, say: Callable[[list[str]], str]) -> str:
    """A token's own text, without the markers of its kind (``##``, ``▁``, ``Ġ``, ``</w>``).

    >>> own_text("##s", lambda tokens: " ".join(tokens).replace(" ##", ""))
    's'
    """
    try:
        spoken = say([_BEFORE, token])
        if not spoken.startswith(_BEFORE):
            spoken = say([token])
    except (KeyError, ValueError):
        # Byte-level tokenizers in Python know no text for a token outside their alphabet.
        spoken = token
    # A SentencePiece model leaves the marker on a piece of another model's vocabulary.
    return spoken.removeprefix(_BEFORE).replace("▁", " ").strip()


class Vocabulary:
    """The tokens of one vocabulary by id.

    `spell` writes ids as tokens, `say` reads tokens as text; both are the tokenizer's.
    """

    def __init__(
        self, spell: Callable[[list[int]], list[str]], say: Callable[[list[str]], str]
    ) -> None:
        self._spell = spell
        self._say = say
        self._written: dict[int, str] = {}
        self._flags: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Tokens as the tokenizer writes them, for ids that `flags` has seen."""
        return list(map(self._written.__getitem__, ids))

    def flags(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of the ids are punctuation, and which are stops."""
        self._learn(ids)
        flags = self._flags[ids]
        return (flags & _PUNCTUATION) > 0, (flags & _STOP) > 0

    def _learn(self, ids: NDArray[np.int64]) -> None:
        size = int(ids.max(initial=-1)) + 1
        if size > len(self._flags):
            more = max(size, 2 * len(self._flags)) - len(self._flags)
            self._flags = np.pad(self._flags, (0, more))
        new = np.unique(ids[self._flags[ids] == 0]).tolist()
        for number, token in zip(new, self._spell(new) if new else [], strict=True):
            self._written[number] = token or ""
            self._flags[number] = self._flag(token or "")

    def _flag(self, token: str) -> int:
        text = own_text(token, self._say)
        return _SEEN | _PUNCTUATION * is_punctuation(text) | _STOP * is_stop(text)


def vocabulary_of(tokenizer: PreTrainedTokenizerBase, *, target: bool = False) -> Vocabulary:
    """A tokenizer's vocabulary; some Marian models have one for the source, one for the target."""
    spell: Callable[[list[int]], list[str]] = tokenizer.convert_ids_to_tokens
    if getattr(tokenizer, "separate_vocabs", False) and not target:
        written = {number: token for token, number in tokenizer.get_src_vocab().items()}

        def spell(ids: list[int]) -> list[str]:
            return [written.get(number, "") for number in ids]

    return Vocabulary(spell, tokenizer.convert_tokens_to_string)
