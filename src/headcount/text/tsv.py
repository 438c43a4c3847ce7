"""Pairs from tab-separated lines: two columns, quotes are ordinary characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headcount.errors import InputError
from headcount.text.lines import TextFile
from headcount.text.sentence import Pair

__all__ = ["read_pairs"]


def read_pairs(
    file: TextFile, skipped: Counter[str], columns: tuple[int, int] = (0, 1)
) -> Iterator[Pair]:
    """The pairs of a file, a line each; blank lines and unread columns are counted.

    The first line sets how many columns there are; a line with another number is an error.
    """
    width = None
    for number, line in file.lines():
        if not line.strip():
            skipped["blank lines"] += 1
            continue
        cells = line.split("\t")
        if width is None:
            width = _width(cells, columns, file.name, number)
            skipped["columns not read"] += width - 2
        yield _pair(cells, width, columns, f"{file.name}, line {number}", number)


def _width(cells: list[str], columns: tuple[int, int], name: str, number: int) -> int:
    if len(cells) < 2:
        raise InputError(
            f"{name}, line {number} has no tab; a pair file has source and target on a line with "
            "a tab between them (one text a line belongs in a .txt file)."
        )
    if max(columns) >= len(cells) or min(columns) < 0:
        raise InputError(
            f"{name} has {len(cells)} columns, so columns {columns[0]} and {columns[1]} cannot "
            f"both be read; they count from 0 to {len(cells) - 1}."
        )
    return len(cells)


def _pair(cells: list[str], width: int, columns: tuple[int, int], where: str, number: int) -> Pair:
    if len(cells) != width:
        raise InputError(
            f"{where} has {_count(len(cells))} where the first line has {width}; "
            "give every line the same number of tabs."
        )
    source, target = (cells[column] for column in columns)
    for side, text in (("source", source), ("target", target)):
        if not text.strip():
            raise InputError(f"{where} has no {side}; fill it in or drop the line.")
    return Pair(source, target, number)


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
