from __future__ import annotations

from collections import Counter

import pytest

from headcount.errors import Fault, skipped_in_words, sound


def number(text: str) -> int | None:
    if text == "?":
        return None
    if not text.isdigit():
        raise Fault(f"'{text}' is no number.", "lines without a number")
    return int(text)


def test_faults_are_skipped_and_counted() -> None:
    skipped: Counter[str] = Counter()
    assert list(sound(["1", "x", "?", "y", "2"], number, skipped)) == [1, 2]
    assert skipped == {"lines without a number": 2}


def test_a_strict_reader_refuses_the_first_fault() -> None:
    found = sound(["1", "x", "y"], number, Counter(), strict=True)
    assert next(found) == 1
    with pytest.raises(Fault, match="'x' is no number"):
        next(found)


def test_a_file_of_faults_alone_is_refused_with_the_first() -> None:
    with pytest.raises(Fault, match="'x' is no number"):
        list(sound(["x", "?", "y"], number, Counter()))
    assert list(sound([], number, Counter())) == []


def test_one_of_many_kinds_is_told_in_the_singular() -> None:
    counts = {"empty nodes": 1, "mentions in two clusters": 1, "blank lines": 3}
    assert skipped_in_words(counts) == [
        "1 empty node skipped.",
        "1 mention in two clusters skipped.",
        "3 blank lines skipped.",
    ]
