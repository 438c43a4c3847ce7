"""The special tokens that a tokenizer puts around a text, for inputs that are made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from headcount.subject import Subject
from headcount.text.account import EncodeReport
from headcount.text.scribe import Scribe

__all__ = ["Wrapping", "wrapping_of"]


@dataclass(frozen=True)
class Wrapping:
    """Ids in front of a text and behind it.

    >>> Wrapping((1,), (2,)).around([7, 8])
    [1, 7, 8, 2]
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """A text's ids between them."""
        return [*self.before, *ids, *self.after]


def wrapping_of(subject: Subject, *, target: bool = False) -> Wrapping:
    """How the subject's tokenizer wraps a text; nothing where there is no tokenizer."""
    if subject.tokenizer is None:
        return Wrapping()
    row = Scribe(subject.tokenizer, EncodeReport()).rows(["a"], target=target)[0]
    before = len(list(takewhile(bool, row.special)))
    after = len(list(takewhile(bool, reversed(row.special)))) if before < len(row.ids) else 0
    return Wrapping(tuple(row.ids[:before]), tuple(row.ids[len(row.ids) - after :]))
