"""Rows of a file with named columns: tab-separated, comma-separated, or a JSON object a line."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.errors import InputError
from headcount.text.lines import PACKINGS, TextFile, comma_cells, tab_cells, text_file
from headcount.text.sentence import Pair

# --- Pairs from tab- or comma-separated lines ---------------------------------------------------

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


# --- Rows of a file with named columns ----------------------------------------------------------

#: What a table can be, by suffix; each may be packed.
SUFFIXES = (".tsv", ".txt", ".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class TableRow:
    """One row: its line in the file, and its cells by column."""

    line: int
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """All rows of a file, and the names of its columns in order."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def find(self, wanted: str | int | None, usual: Sequence[str], what: str) -> str:
        """A column by name, by number from 0, or by one of its usual names."""
        if wanted is None:
            return self._usual(usual, what)
        name = str(wanted)
        if name not in self.columns and name.isdecimal() and int(name) < len(self.columns):
            return self.columns[int(name)]
        if name not in self.columns:
            near = difflib.get_close_matches(name, self.columns, n=1)
            hint = f" (closest: {near[0]})" if near else ""
            raise InputError(f"{self.name} has no column '{name}'{hint}; it has {self._listed()}.")
        return name

    def has(self, names: Sequence[str]) -> str | None:
        """The first of some names that is a column, if any is."""
        return next((name for name in names if name in self.columns), None)

    def _usual(self, usual: Sequence[str], what: str) -> str:
        found = self.has(usual)
        if found is None:
            raise InputError(
                f"{self.name} has no column {' or '.join(usual)} for the {what}; it has "
                f"{self._listed()}: name one with {what}=COLUMN."
            )
        return found

    def _listed(self) -> str:
        return ", ".join(self.columns)


def read_rows(path: str | Path, *, header: bool = True, ragged: bool = False) -> Table:
    """Read a file of rows; without a header its columns are called 0, 1, 2 and so on.

    In .tsv files quotes are ordinary characters; in .csv files they quote. Blank lines are
    skipped. A row with more or fewer cells than the first is an error; in a `ragged` file a row
    may have more, which are not read.
    """
    file = text_file(path)
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".ndjson"):
        return _objects(file)
    records = comma_cells(file) if suffix == ".csv" else tab_cells(file)
    return _table(file.name, _filled(records), header, ragged)


def suffix_of(path: str | Path) -> str:
    """What a file's name says of its format, whether it is packed or not.

    >>> suffix_of("dev.tsv.xz")
    '.tsv'
    """
    path = Path(path)
    inner = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    if inner.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path} has the suffix '{inner.suffix}', which says nothing of its format; examples "
            f"come in {', '.join(SUFFIXES)}, each also packed as {', '.join(PACKINGS)}."
        )
    return inner.suffix.lower()


def _filled(records: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold anything."""
    return ((number, cells) for number, cells in records if any(cell.strip() for cell in cells))


def _table(
    name: str, records: Iterator[tuple[int, list[str]]], header: bool, ragged: bool
) -> Table:
    first = next(records, None)
    if first is None:
        raise InputError(f"{name} is empty: it has no examples.")
    columns = first[1] if header else [str(number) for number in range(len(first[1]))]
    if len(set(columns)) < len(columns):
        raise InputError(
            f"{name} names a column twice in its header: {', '.join(columns)}; if the first line "
            "is an example, say header=no and name columns by number from 0."
        )
    width = len(columns) if ragged else None
    rows = [] if header else [_row(name, *first, columns)]
    rows += [_row(name, number, cells[:width], columns) for number, cells in records]
    if not rows:
        raise InputError(f"{name} has a header and no examples.")
    return Table(name, tuple(columns), tuple(rows))


def _row(name: str, number: int, cells: list[str], columns: Sequence[str]) -> TableRow:
    if len(cells) != len(columns):
        raise InputError(
            f"{name}, line {number} has {_table_file_count(len(cells))} where the first line has "
            f"{len(columns)}; give every line the same number."
        )
    return TableRow(number, dict(zip(columns, cells, strict=True)))


def _objects(file: TextFile) -> Table:
    rows = tuple(_object(file.name, number, line) for number, line in file.lines() if line.strip())
    if not rows:
        raise InputError(f"{file.name} is empty: it has no examples.")
    columns = tuple(rows[0].cells)
    for row in rows:
        missing = [name for name in columns if name not in row.cells]
        if missing:
            raise InputError(
                f"{file.name}, line {row.line} has no '{missing[0]}', which the first line has; "
                "give every object the same keys."
            )
    return Table(file.name, columns, rows)


def _object(name: str, number: int, line: str) -> TableRow:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}, line {number} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise InputError(
            f"{name}, line {number} is a JSON {type(found).__name__}; give an object with named "
            'fields, e.g. {"text": "...", "label": 1}.'
        )
    return TableRow(number, found)


def _table_file_count(cells: int) -> str:
    return "1 column" if cells == 1 else f"{cells} columns"
