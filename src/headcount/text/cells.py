"""Lines as cells: between tabs quotes are ordinary characters, between commas they quote."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from headcount.errors import InputError
from headcount.text.lines import TextFile

__all__ = ["comma_cells", "tab_cells"]

#: A row's line in the file, and its cells.
Cells = tuple[int, list[str]]


def tab_cells(file: TextFile) -> Iterator[Cells]:
    """The cells of every line, blank ones included.

    >>> import io
    >>> list(tab_cells(TextFile("x.tsv", lambda: io.BytesIO(b'a\\tb "c"'))))
    [(1, ['a', 'b "c"'])]
    """
    for number, line in file.lines():
        yield number, line.split("\t")


def comma_cells(file: TextFile) -> Iterator[Cells]:
    """The cells of every row; a quoted cell may hold commas and line ends.

    >>> import io
    >>> list(comma_cells(TextFile("x.csv", lambda: io.BytesIO(b'a,"b, c"'))))
    [(1, ['a', 'b, c'])]
    """
    reader = csv.reader((line + "\n" for _, line in file.lines()), strict=True)
    last = 0
    try:
        for cells in reader:
            number, last = last + 1, reader.line_num
            yield number, cells
    except csv.Error as error:
        raise InputError(f"{file.name}, line {last + 1} is not proper CSV: {error}.") from error
