"""JSON lines as records: an object a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from headcount.text.faults import Fault
from headcount.text.lines import TextFile

__all__ = ["Line", "lines", "need", "record"]

#: A line's number and text.
Line = tuple[int, str]


def lines(file: TextFile, skipped: Counter[str]) -> Iterator[Line]:
    """The lines of a file; blank ones are counted."""
    for number, line in file.lines():
        if line.strip():
            yield number, line
        else:
            skipped["blank lines"] += 1


def record(line: Line, name: str, keys: Sequence[str], what: str) -> dict[str, Any]:
    """The object that a line holds, with these keys at least; `what` says what it should be.

    >>> record((3, '{"sents": []}'), "x.jsonl", ["sents"], "a document")
    {'sents': []}
    """
    number, text = line
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise Fault(
            f"{name}, line {number} is not JSON: {error.msg} at character {error.pos + 1}.",
            "lines that are not JSON",
        ) from error
    missing = [key for key in keys if not isinstance(found, dict) or key not in found]
    if missing:
        raise Fault(
            f"{name}, line {number} has no {' and no '.join(missing)}; {what} has "
            f"{', '.join(keys)}.",
            f"lines without {' and '.join(keys)}",
        )
    assert isinstance(found, dict)  # or a key would be missing
    return found


def need(holds: bool, where: str, said: str, reason: str) -> None:
    """Refuse a record of which something does not hold."""
    if not holds:
        raise Fault(f"{where} {said}.", reason)
