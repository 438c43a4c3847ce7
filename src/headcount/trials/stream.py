"""Texts as one long run of token ids, to cut windows and haystacks from."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.errors import InputError
from headcount.subject import Subject
from headcount.text.account import EncodeReport
from headcount.text.scribe import Scribe

__all__ = ["Stream", "stream_of"]


class Stream:
    """Token ids that follow one another; a cut may go round the end, once.

    >>> Stream([1, 2, 3, 4]).cut(3, 3)
    [4, 1, 2]
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, start: int, length: int) -> list[int]:
        """So many ids from a place on."""
        if length > len(self):
            raise InputError(
                f"The text has {len(self):,} tokens and the trial cuts {length:,} in one piece; "
                "give more text, or a smaller length."
            )
        around = self.ids[start:] + self.ids[:start]
        return around[:length]

    def windows(self, length: int, most: int) -> list[list[int]]:
        """Pieces of one length that follow one another without overlap, the first so many."""
        whole = range(0, len(self) - length + 1, length)
        if not whole:
            raise InputError(
                f"The text has {len(self):,} tokens and the trial reads windows of {length}; give "
                "more text, or a smaller length."
            )
        return [self.ids[start : start + length] for start in whole][:most]


def stream_of(subject: Subject, texts: Sequence[str]) -> Stream:
    """Texts joined by a space, as the tokenizer writes them, without special tokens."""
    assert subject.tokenizer is not None  # trials on text are unfit without one
    spaced = [texts[0], *(f" {text}" for text in texts[1:])] if texts else []
    rows = Scribe(subject.tokenizer, EncodeReport()).rows(spaced) if spaced else []
    return Stream(
        [
            number
            for row in rows
            for number, special in zip(row.ids, row.special, strict=True)
            if not special
        ]
    )
