"""Several heads in a few words: a head, a layer, a stack, or a range of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from headcount.errors import UsageError
from headcount.heads import Head, check_heads

__all__ = ["check_head_set", "check_once", "heads_named"]

_SPAN = r"(\d+)(?:-(\d+))?"
_NAME = re.compile(rf"(enc|dec|cross)(?:\.{_SPAN}(?:\.{_SPAN})?)?")


def check_head_set(names: str) -> list[str]:
    """The words of a set of heads, each of a known shape; no model is needed to tell.

    >>> check_head_set("enc.3, cross.0.1-2,")
    ['enc.3', 'cross.0.1-2']
    """
    words = [word.strip() for word in names.split(",") if word.strip()]
    for word in words:
        if _NAME.fullmatch(word) is None:
            raise UsageError(
                f"'{word}' is not a head's name; write stack.layer.head counted from 0, e.g. "
                "enc.5.3, a layer (enc.5), a stack (cross) or a range (enc.0-2, enc.5.0-3)."
            )
    return words


def check_once(heads: Iterable[str | Head]) -> None:
    """Refuse to remove what is named more than once: one of the two is a slip.

    >>> check_once(["enc.0.1", "enc.0.2", "enc.0.1"])
    Traceback (most recent call last):
    headcount.errors.UsageError: enc.0.1 is named twice; name each head to remove once.
    """
    twice = [str(head) for head, times in Counter(heads).items() if times > 1]
    if twice:
        raise UsageError(f"{', '.join(twice)} is named twice; name each head to remove once.")


def heads_named(names: str, known: Sequence[Head]) -> list[Head]:
    """The heads that a set names, each once, in the order of the names; all must exist.

    >>> known = [Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)]
    >>> [str(head) for head in heads_named("enc.1,enc.0-1.1", known)]
    ['enc.1.0', 'enc.1.1', 'enc.0.1']
    """
    found: dict[Head, None] = {}
    for word in check_head_set(names):
        found.update(dict.fromkeys(_members(word, known)))
    check_heads(found, known)
    return list(found)


def _members(word: str, known: Sequence[Head]) -> Iterator[Head]:
    """Every head that a word means; one that cannot exist where it means none."""
    match = _NAME.fullmatch(word)
    assert match is not None  # checked by the caller
    stack, *ends = match.groups()
    layers = _span(*ends[:2]) or sorted({head.layer for head in known if head.stack == stack})
    for layer in layers or [0]:
        there = [head.index for head in known if (head.stack, head.layer) == (stack, layer)]
        for index in _span(*ends[2:]) or there or [0]:
            yield Head(stack, layer, index)


def _span(first: str | None, last: str | None) -> Sequence[int]:
    """The numbers of a range, both ends in; none where there is no range."""
    if first is None:
        return ()
    if int(last or first) < int(first):
        raise UsageError(f"The range {first}-{last} ends before it begins; write {last}-{first}.")
    return range(int(first), int(last or first) + 1)
