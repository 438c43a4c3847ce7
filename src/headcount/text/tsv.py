"""Pairs from tab- or comma-separated lines: two columns, by number or by name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from headcount.errors import InputError
from headcount.text.cells import comma_cells, tab_cells
from headcount.text.lines import TextFile
from headcount.text.sentence import Pair

__all__ = ["Columns", "read_pairs"]

#: Source and target, by number from 0 or by the header's names.
Columns = tuple[int | str, int | str]


def read_pairs(
    file: TextFile,
    skipped: Counter[str],
    columns: Columns = (0, 1),
    *,
    header: bool = False,
    commas: bool = False,
) -> Iterator[Pair]:
    """The pairs of a file, a line each; blank lines, a header and unread columns are counted.

    The first line sets how many columns there are; a line with another number is an error.
    Between tabs quotes are ordinary characters; between `commas` they quote.
    """
    places: tuple[int, int] | None = None
    width, sign = 0, "comma" if commas else "tab"
    named = header or any(isinstance(column, str) for column in columns)
    for number, cells in comma_cells(file) if commas else tab_cells(file):
        if not any(cell.strip() for cell in cells):
            skipped["blank lines"] += 1
            continue
        if places is None:
            _check_two(cells, f"{file.name}, line {number}", sign)
            width, places = len(cells), _places(cells, columns, file.name)
            skipped["columns not read"] += width - 2
            if named:
                skipped["header lines"] += 1
                continue
        where = f"{file.name}, line {number}"
        _check_width(cells, width, where, sign)
        yield _pair(cells, places, where, number)


def _check_two(cells: list[str], where: str, sign: str) -> None:
    if len(cells) < 2:
        raise InputError(
            f"{where} has no {sign}; a pair file has source and target on a line with "
            f"a {sign} between them (one text a line belongs in a .txt file)."
        )


def _check_width(cells: list[str], width: int, where: str, sign: str) -> None:
    if len(cells) != width:
        raise InputError(
            f"{where} has {_count(len(cells))} where the first line has {width}; "
            f"give every line the same number of {sign}s."
        )


def _places(cells: list[str], columns: Columns, name: str) -> tuple[int, int]:
    """The numbers of the two columns."""
    first, second = (_place(column, cells, name) for column in columns)
    if max(first, second) >= len(cells) or min(first, second) < 0:
        raise InputError(
            f"{name} has {len(cells)} columns, so columns {first} and {second} cannot "
            f"both be read; they count from 0 to {len(cells) - 1}."
        )
    return first, second


def _place(column: int | str, cells: list[str], name: str) -> int:
    if isinstance(column, int):
        return column
    if column not in cells:
        near = difflib.get_close_matches(column, cells, n=1)
        hint = f" (closest: {near[0]})" if near else ""
        raise InputError(f"{name} has no column '{column}'{hint}; it has {', '.join(cells)}.")
    return cells.index(column)


def _pair(cells: list[str], columns: tuple[int, int], where: str, number: int) -> Pair:
    source, target = (cells[column] for column in columns)
    for side, text in (("source", source), ("target", target)):
        if not text.strip():
            raise InputError(f"{where} has no {side}; fill it in or drop the line.")
    return Pair(source, target, number)


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
