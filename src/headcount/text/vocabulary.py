"""What each token of a vocabulary is: how it is written, whether it is punctuation.

Looked up once a token id and remembered, so that a corpus costs table lookups only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Vocabulary", "is_punctuation", "is_stop", "own_text", "vocabulary_of"]

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
        self._grow(int(ids.max(initial=-1)) + 1)
        new = np.unique(ids[self._flags[ids] == 0]).tolist()
        for number, token in zip(new, self._spell(new) if new else [], strict=True):
            self._written[number] = token or ""
            self._flags[number] = self._flag(token or "")

    def _grow(self, size: int) -> None:
        if size > len(self._flags):
            room = np.zeros(max(size, 2 * len(self._flags)), dtype=np.uint8)
            room[: len(self._flags)] = self._flags
            self._flags = room

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
