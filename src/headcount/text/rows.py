"""One tokenised text, or two, before padding, and how a long one is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from headcount.errors import UsageError

__all__ = ["Place", "Row", "content_length", "shorten", "windows"]

#: Where a token stands in its text, in characters; None for a token that is in no text.
Place = tuple[int, int] | None

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids, which of them the tokenizer added, and token types where it gives them.

    `places`, where they were asked for, say which characters each token stands for; a second
    text counts on from the first, with one character between them.
    """

    ids: Sequence[int]
    special: Sequence[int]
    types: Sequence[int] | None = None
    places: Sequence[Place] | None = None


def content_length(row: Row) -> int:
    """How many tokens come from the text itself.

    >>> content_length(Row([101, 7, 8, 102], [1, 0, 0, 1]))
    2
    """
    return len(row.ids) - sum(row.special)


def windows(row: Row, limit: int) -> list[Row]:
    """Consecutive pieces of at most `limit` tokens, each between the row's own specials.

    >>> [piece.ids for piece in windows(Row([101, 5, 6, 7, 102], [1, 0, 0, 0, 1]), 4)]
    [[101, 5, 6, 102], [101, 7, 102]]
    """
    if len(row.ids) <= limit:
        return [row]
    lead, tail = _frame(row.special)
    room = _room(limit, lead + tail)
    end = len(row.ids) - tail
    before, after = range(lead), range(end, len(row.ids))
    return [
        _take(row, [*before, *range(start, min(start + room, end)), *after])
        for start in range(lead, end, room)
    ]


def shorten(row: Row, limit: int) -> Row:
    """The row cut to `limit` tokens: specials stay, the longest text loses its end first.

    >>> shorten(Row([101, 5, 6, 7, 102, 8, 102], [1, 0, 0, 0, 1, 0, 1]), 6).ids
    [101, 5, 6, 102, 8, 102]
    """
    runs = [
        [place for place, _ in run]
        for special, run in groupby(enumerate(row.special), key=lambda pair: pair[1])
        if not special
    ]
    room = _room(limit, sum(row.special), len(runs))
    kept = {
        place for run, size in zip(runs, _shares(runs, room), strict=True) for place in run[:size]
    }
    places = [place for place, special in enumerate(row.special) if special or place in kept]
    return _take(row, places)


def _frame(special: Sequence[int]) -> tuple[int, int]:
    """How many specials stand before the first and after the last token of the text."""
    texts = [place for place, added in enumerate(special) if not added]
    return texts[0], len(special) - 1 - texts[-1]


def _room(limit: int, specials: int, needed: int = 1) -> int:
    if limit - specials < needed:
        raise UsageError(
            f"A length of {limit} leaves no room for text beside {specials} special tokens; "
            f"use {specials + needed} or more."
        )
    return limit - specials


def _shares(runs: Sequence[Sequence[int]], room: int) -> list[int]:
    """How much each text keeps: short ones all, long ones an even share of what is left."""
    shares = [0] * len(runs)
    order = sorted(range(len(runs)), key=lambda number: len(runs[number]))
    for done, number in enumerate(order):
        shares[number] = min(len(runs[number]), room // (len(runs) - done))
        room -= shares[number]
    return shares


def _take(row: Row, places: Sequence[int]) -> Row:
    def at(values: Sequence[T]) -> list[T]:
        return [values[place] for place in places]

    return replace(
        row,
        ids=at(row.ids),
        special=at(row.special),
        types=None if row.types is None else at(row.types),
        places=None if row.places is None else at(row.places),
    )
