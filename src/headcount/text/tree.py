"""Dependency trees checked: every word hangs, through its heads, from the one root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headcount.text.faults import Fault
from headcount.text.sentence import Word

__all__ = ["check_tree"]


def check_tree(words: Sequence[Word], where: str, skipped: Counter[str]) -> None:
    """Refuse heads that make no tree; words without a head are counted, none at all is no fault.

    >>> check_tree([Word("Go", head=2), Word("on", head=1)], "Sentence 1", Counter())
    Traceback (most recent call last):
        ...
    headcount.text.faults.Fault: Sentence 1 has a cycle: word 1 ('Go') hangs from itself ...
    """
    heads = [word.head for word in words]
    given = [head for head in heads if head is not None]
    if not given:
        return
    _check_range(words, where)
    _check_cycles(words, heads, where)
    _check_roots(given, len(heads), where)
    if len(given) < len(heads):
        skipped["words without a head"] += len(heads) - len(given)


def _check_range(words: Sequence[Word], where: str) -> None:
    for number, word in enumerate(words, start=1):
        if word.head is not None and not 0 <= word.head <= len(words):
            raise Fault(
                f"{where} has a head out of range: word {number} ('{word.form}') hangs from "
                f"{word.head}, and there are {len(words)} words.",
                "sentences with a head out of range",
            )


def _check_roots(given: list[int], count: int, where: str) -> None:
    roots = given.count(0)
    if roots > 1:
        raise Fault(
            f"{where} has {roots} roots; a tree has one word with head 0.",
            "sentences with several roots",
        )
    if not roots and len(given) == count:
        raise Fault(
            f"{where} has no root; a tree has one word with head 0.", "sentences without a root"
        )


def _check_cycles(words: Sequence[Word], heads: Sequence[int | None], where: str) -> None:
    for number, word in enumerate(words, start=1):
        if _circles(number, heads):
            raise Fault(
                f"{where} has a cycle: word {number} ('{word.form}') hangs from itself by way of "
                "its heads.",
                "sentences with a cycle",
            )


def _circles(number: int, heads: Sequence[int | None]) -> bool:
    """Whether climbing from a word comes back to it."""
    here = heads[number - 1]
    for _ in heads:
        if not here or here == number:
            break
        here = heads[here - 1]
    return here == number
