"""Examples in hand: tuples, mappings or dataclasses, read into one shape or refused by number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headcount.errors import InputError
from headcount.text.sentence import Pair, Sentence, texts_of

__all__ = [
    "Labelled",
    "content",
    "labelled",
    "pair",
    "place",
    "read_each",
    "scored",
    "sentence",
]

Label = str | int | float
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One text, or two, and what is to be said about it: a class, or a number.

    >>> Labelled("A fine film.", "positive").second is None
    True
    """

    text: str
    label: Label
    second: str | None = None
    line: int | None = field(default=None, compare=False)


def place(number: int, line: int | None = None) -> str:
    """How a message names an example, counted from 1.

    >>> place(2, 7)
    'Example 3 (line 7)'
    """
    return f"Example {number + 1}" + ("" if line is None else f" (line {line})")


def content(example: Any) -> Any:
    """What an example says, wherever it stood.

    >>> content(Pair("Rain.", "Regen.", line=7))
    ('Rain.', 'Regen.')
    """
    if isinstance(example, Labelled):
        return example.text, example.second, example.label
    return texts_of(example) if isinstance(example, Pair | Sentence) else example


def read_each(
    items: Iterable[Any], read: Callable[[Any, str], T], kind: str, shape: str
) -> tuple[T, ...]:
    """Read items in hand one by one; none at all is an error."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InputError(
            f"Examples of the kind {kind} are a list of {shape}, or the path of a file, not of the "
            f"type {type(items).__name__}."
        )
    found = tuple(read(item, place(number)) for number, item in enumerate(items))
    if not found:
        raise InputError(f"There are no examples; tasks of the kind {kind} take a list of {shape}.")
    return found


def labelled(item: Any, where: str) -> Labelled:
    """A labelled example from a (text, label) or (text, text2, label), or a mapping.

    >>> labelled(("A fine film.", 1), "Example 1")
    Labelled(text='A fine film.', label=1, second=None, line=None)
    """
    if isinstance(item, Labelled):
        return _full(item, where)
    if isinstance(item, Mapping):
        return _full(Labelled(item.get("text"), item.get("label"), item.get("text2")), where)  # type: ignore[arg-type]
    parts = _parts(item, where, (2, 3), "(text, label) or (text, text2, label)")
    second = parts[1] if len(parts) == 3 else None
    return _full(Labelled(parts[0], parts[-1], second), where)


def scored(item: Any, where: str) -> Labelled:
    """The same with a number as its label.

    >>> scored(("A dog.", "A hound.", "4.5"), "Example 1").label
    4.5
    """
    return with_number(labelled(item, where), where)


def with_number(example: Labelled, where: str) -> Labelled:
    """The example with its label read as a finite number."""
    try:
        number = float(example.label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} has the score '{example.label}'; a score is a finite number.")
    return Labelled(example.text, number, example.second, example.line)


def pair(item: Any, where: str) -> Pair:
    """A source with its target, from a (source, target) or a mapping."""
    if isinstance(item, Mapping):
        item = (item.get("source", ""), item.get("target", ""))
    if not isinstance(item, Pair):
        item = Pair(*_parts(item, where, (2,), "(source, target)"))
    for side, text in (("source", item.source), ("target", item.target)):
        _must_be_text(text, where, side)
    return item


def sentence(item: Any, where: str) -> Sentence:
    """One text."""
    if isinstance(item, Mapping):
        item = item.get("text", "")
    found = item if isinstance(item, Sentence) else Sentence(item)
    _must_be_text(found.text, where, "text")
    return found


def _full(example: Labelled, where: str) -> Labelled:
    """The example, if it has everything."""
    _must_be_text(example.text, where, "text")
    if example.second is not None:
        _must_be_text(example.second, where, "second text")
    if example.label is None or not str(example.label).strip():
        raise InputError(f"{where} has no label; fill it in or drop the example.")
    if isinstance(example.label, bool) or not isinstance(example.label, str | int | float):
        return Labelled(example.text, _plain(example.label, where), example.second, example.line)
    return example


def _plain(label: Any, where: str) -> Label:
    """A label of another type as a plain number: True, or NumPy's numbers."""
    plain = int(label) if isinstance(label, bool) else getattr(label, "item", lambda: label)()
    if not isinstance(plain, str | int | float):
        raise InputError(
            f"{where} has a label of the type {type(label).__name__}; give a name or a number."
        )
    return plain


def _parts(item: Any, where: str, sizes: Sequence[int], shape: str) -> Sequence[Any]:
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise InputError(f"{where} is a {type(item).__name__}; give {shape}.")
    if len(item) not in sizes:
        raise InputError(f"{where} has {len(item)} parts; give {shape}.")
    return item


def _must_be_text(text: Any, where: str, part: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{where} has a {part} of the type {type(text).__name__}; give a string.")
    if not text.strip():
        raise InputError(f"{where} has no {part}; fill it in or drop the example.")
