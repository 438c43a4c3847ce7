"""Rows of a file: tab-separated, comma-separated, or a JSON object a line.

One reader serves tables of examples with named columns (`read_rows`), pair corpora of any length
(`read_pairs`) and GAP's table. Between tabs quotes are ordinary characters; between commas they
quote.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from headcount.errors import InputError
from headcount.text.lines import Cells, TextFile, cells_of, json_value, suffix_of, text_file
from headcount.text.sentence import Pair

# --- Tables with named columns ------------------------------------------------------------------


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
        if wanted is not None:
            known = {str(number): name for number, name in enumerate(self.columns)}
            known |= {name: name for name in self.columns}
            if str(wanted) not in known:
                raise _no_column(str(wanted), self.columns, self.name)
            return known[str(wanted)]
        found = self.has(usual)
        if found is None:
            raise InputError(
                f"{self.name} has no column {' or '.join(usual)} for the {what}; it has "
                f"{', '.join(self.columns)}: name one with {what}=COLUMN."
            )
        return found

    def has(self, names: Sequence[str]) -> str | None:
        """The first of some names that is a column, if any is."""
        return next((name for name in names if name in self.columns), None)


def read_rows(path: str | Path, *, header: bool = True, ragged: bool = False) -> Table:
    """Read a file of rows; without a header its columns are called 0, 1, 2 and so on.

    Blank lines are skipped. A row with more or fewer cells than the first is an error; in a
    `ragged` file a row may have more, which are not read.
    """
    file, suffix = text_file(path), suffix_of(path)
    rows: Iterable[TableRow]
    if suffix in (".jsonl", ".ndjson"):
        rows = found = list(_objects(file))
        columns = list(found[0].cells) if found else []
    else:
        cells = _even(file, Counter(), suffix == ".csv", ragged)
        first = next(cells, (1, []))
        columns = first[1] if header else [str(number) for number in range(len(first[1]))]
        if len(set(columns)) < len(columns):
            raise InputError(
                f"{file.name} names a column twice in its header: {', '.join(columns)}; if the "
                "first line is an example, say header=no and name columns by number from 0."
            )
        if not header and columns:
            cells = chain([first], cells)
        rows = [TableRow(line, dict(zip(columns, each, strict=True))) for line, each in cells]
    if not rows:
        why = "has a header and no examples" if columns else "is empty: it has no examples"
        raise InputError(f"{file.name} {why}.")
    return Table(file.name, tuple(columns), tuple(rows))


def _objects(file: TextFile) -> Iterator[TableRow]:
    """The rows of JSON lines: objects with the keys that the first has."""
    columns: list[str] = []
    for number, line in file.filled(Counter()):
        where = f"{file.name}, line {number}"
        found = json_value(line, where)
        if not isinstance(found, dict):
            raise InputError(
                f"{where} is a JSON {type(found).__name__}; give an object with named fields, e.g. "
                '{"text": "...", "label": 1}.'
            )
        columns = columns or list(found)
        missing = [name for name in columns if name not in found]
        if missing:
            raise InputError(
                f"{where} has no '{missing[0]}', which the first line has; give every object the "
                "same keys."
            )
        yield TableRow(number, found)


# --- Pairs --------------------------------------------------------------------------------------

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
    """The pairs of a file, a line each; blank lines, a header and unread columns are counted."""
    rows = _even(file, skipped, commas)
    first = next(rows, None)
    if first is None:
        return
    number, cells = first
    if len(cells) < 2:
        sign = _sign(commas)
        raise InputError(
            f"{file.name}, line {number} has no {sign}; a pair file has source and target on a "
            f"line with a {sign} between them (one text a line belongs in a .txt file)."
        )
    for column in columns:
        if isinstance(column, str) and column not in cells:
            raise _no_column(column, cells, file.name)
    places = [each if isinstance(each, int) else cells.index(each) for each in columns]
    if max(places) >= len(cells) or min(places) < 0:
        raise InputError(
            f"{file.name} has {len(cells)} columns, so columns {places[0]} and {places[1]} cannot "
            f"both be read; they count from 0 to {len(cells) - 1}."
        )
    skipped["columns not read"] += len(cells) - 2
    if header or any(isinstance(column, str) for column in columns):
        skipped["header lines"] += 1
    else:
        rows = chain([first], rows)
    for number, cells in rows:
        source, target = (cells[place] for place in places)
        if not (source.strip() and target.strip()):
            side = "target" if source.strip() else "source"
            raise InputError(
                f"{file.name}, line {number} has no {side}; fill it in or drop the line."
            )
        yield Pair(source, target, number)


def _even(
    file: TextFile, skipped: Counter[str], commas: bool, ragged: bool = False
) -> Iterator[Cells]:
    """The rows, each with as many cells as the first; a `ragged` one may have more."""
    width = 0
    for number, cells in cells_of(file, skipped, commas=commas):
        width = width or len(cells)
        if len(cells) < width or (len(cells) > width and not ragged):
            count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            raise InputError(
                f"{file.name}, line {number} has {count} where the first line has {width}; give "
                f"every line the same number of {_sign(commas)}s."
            )
        yield number, cells[:width]


def _sign(commas: bool) -> str:
    return "comma" if commas else "tab"


def _no_column(column: str, columns: Sequence[str], name: str) -> InputError:
    near = difflib.get_close_matches(column, columns, n=1)
    hint = f" (closest: {near[0]})" if near else ""
    return InputError(f"{name} has no column '{column}'{hint}; it has {', '.join(columns)}.")
