"""Faults of single sentences: skipped and counted, or refused, as the reader is told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from headcount.errors import InputError

__all__ = ["Fault", "skipped_in_words", "sound"]

Block = TypeVar("Block")
Found = TypeVar("Found")

#: What can be skipped, as the reasons write it, to be put in the singular.
_THINGS = re.compile(
    r"\b(line|row|column|node|comment|sentence|word|mention|bracket|argument|predicate)s\b"
)


class Fault(InputError):
    """One sentence that cannot be used; `reason` names its kind, in the plural."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def sound(
    blocks: Iterable[Block],
    read: Callable[[Block], Found | None],
    skipped: Counter[str],
    strict: bool = False,
) -> Iterator[Found]:
    """What can be read of each block; a faulty one is counted, or with `strict` refused.

    Where nothing can be read at all the first fault is raised: the file is not what it should be.

    >>> def read(text):
    ...     if not text.isdigit():
    ...         raise Fault(f"'{text}' is no number.", "odd lines")
    ...     return int(text)
    >>> skipped = Counter()
    >>> list(sound(["1", "x", "2"], read, skipped)), dict(skipped)
    ([1, 2], {'odd lines': 1})
    """
    first, some = None, False
    for block in blocks:
        try:
            found = read(block)
        except Fault as fault:
            if strict:
                raise
            first = first or fault
            skipped[fault.reason] += 1
            continue
        if found is not None:
            some = True
            yield found
    if first is not None and not some:
        raise first


def skipped_in_words(skipped: Mapping[str, int]) -> list[str]:
    """What was left out, a sentence each.

    >>> skipped_in_words({"blank lines": 2, "sentences with a cycle": 1})
    ['2 blank lines skipped.', '1 sentence with a cycle skipped.']
    """
    return [f"{count} {_counted(count, what)} skipped." for what, count in skipped.items()]


def _counted(count: int, what: str) -> str:
    return _THINGS.sub(r"\1", what, count=1) if count == 1 else what
