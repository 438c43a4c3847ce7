"""A head's name: stack, layer and index, counted from 0 and written ``enc.5.3``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headcount.errors import UnknownHead, UsageError

# --- A head's name ------------------------------------------------------------------------------

#: Encoder self-attention, decoder self-attention, decoder-to-encoder attention.
STACKS = ("enc", "dec", "cross")

_NAME = re.compile(r"\s*(enc|dec|cross)\.(\d+)\.(\d+)\s*")


class Head(NamedTuple):
    """One attention head.

    >>> str(Head("enc", 5, 3))
    'enc.5.3'
    """

    stack: str
    layer: int
    index: int  # type: ignore[assignment]  # the contract's name; hides tuple.index

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.index}"


def check_stack(name: str) -> None:
    """Refuse what is no stack of any model.

    >>> check_stack("encoder")
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no stack 'encoder'; stacks are enc, dec, cross.
    """
    if name not in STACKS:
        raise UsageError(f"There is no stack '{name}'; stacks are {', '.join(STACKS)}.")


def parse_head(name: str | tuple[str, int, int]) -> Head:
    """Read a head's name, or take a row of a table's index.

    >>> parse_head("cross.0.7"), parse_head(("cross", 0, 7))[1:]
    (Head(stack='cross', layer=0, index=7), (0, 7))
    """
    if isinstance(name, Head):
        return name
    match = _NAME.fullmatch(".".join(map(str, name)) if isinstance(name, tuple) else str(name))
    if match is None:
        _check_from_one(str(name))
        raise UsageError(
            f"'{name}' is not a head's name; write stack.layer.head counted from 0, "
            "with the stack enc, dec or cross, e.g. enc.5.3."
        )
    stack, layer, index = match.groups()
    return Head(stack, int(layer), int(index))


def parse_heads(names: str | Iterable[str | Head]) -> list[Head]:
    """Read several heads, given as a list or separated by commas.

    >>> [str(head) for head in parse_heads("enc.0.1,dec.2.3")]
    ['enc.0.1', 'dec.2.3']
    """
    parts = [part for part in names.split(",") if part.strip()] if isinstance(names, str) else names
    return [parse_head(part) for part in parts]


def check_heads(wanted: Iterable[Head], known: Iterable[Head]) -> None:
    """Raise `UnknownHead` for the first wanted head that is not known, saying which exist.

    >>> check_heads([Head("enc", 0, 9)], [Head("enc", 0, 0), Head("enc", 0, 1)])
    Traceback (most recent call last):
    headcount.errors.UnknownHead: There is no head enc.0.9; this model has enc.0.0 to enc.0.1.
    """
    existing = list(known)
    there = set(existing)
    for head in wanted:
        if head not in there:
            raise UnknownHead(f"There is no head {head}; {_there(head, existing)}.")


def _there(head: Head, heads: list[Head]) -> str:
    """What there is instead: heads of the same layer where it has gaps, else the whole range."""
    layer = [other.index for other in heads if other[:2] == head[:2]]
    if layer and head.index < max(layer):  # another was removed, or this one
        return f"{head.stack}.{head.layer} has the heads {', '.join(map(str, sorted(layer)))}"
    return f"this model has {_ranges(heads)}"


def _ranges(heads: list[Head]) -> str:
    """The first and last head of each stack, in words."""
    spans = []
    for stack in STACKS:
        of_stack = sorted(head for head in heads if head.stack == stack)
        if of_stack:
            spans.append(f"{of_stack[0]} to {of_stack[-1]}")
    return ", ".join(spans) or "no heads"


# --- Several heads in a few words ---------------------------------------------------------------

_SPAN = r"(\d+)(?:-(\d+))?"
_NAME_HEAD_SETS = re.compile(rf"(enc|dec|cross)(?:\.{_SPAN}(?:\.{_SPAN})?)?")


def stack_names(given: str) -> list[str]:
    """Stacks with commas between; a word that is no stack is refused."""
    wanted = [name.strip() for name in given.replace("|", ",").split(",") if name.strip()]
    for stack in wanted:
        check_stack(stack)
    return wanted


def _check_from_one(name: str) -> None:
    """Answer layer-head as papers count it, from 1: 8-11.

    >>> _check_from_one("8-11")
    Traceback (most recent call last):
    headcount.errors.UsageError: '8-11' counts layer and head from 1, as papers do; here they count
    from 0, and the stack is named: enc.7.10, or dec.7.10 of a decoder.
    """
    match = re.fullmatch(r"(?:enc|dec)?[.:]?([1-9]\d*)-([1-9]\d*)", name)
    if match is not None:
        place = f"{int(match[1]) - 1}.{int(match[2]) - 1}"
        raise UsageError(
            f"'{name}' counts layer and head from 1, as papers do; here they count from 0, and the "
            f"stack is named: enc.{place}, or dec.{place} of a decoder."
        )


def check_head_set(names: str) -> list[str]:
    """The words of a set of heads, each of a known shape; no model is needed.

    >>> check_head_set("enc.3, cross.0.1-2,")
    ['enc.3', 'cross.0.1-2']
    """
    words = [word.strip() for word in names.split(",") if word.strip()]
    for word in words:
        if _NAME_HEAD_SETS.fullmatch(word) is None:
            _check_from_one(word)
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
    match = _NAME_HEAD_SETS.fullmatch(word)
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
