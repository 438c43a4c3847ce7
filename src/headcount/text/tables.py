"""Rows: tab-separated, comma-separated, a JSON object a line, Parquet, Arrow, or a dataset.

One reader serves tables of examples with named columns (`read_rows`), corpora of any length
(`Records`) and GAP's table. Between tabs quotes are ordinary characters; between
commas they quote.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from headcount import plugins
from headcount.errors import Fault, InputError
from headcount.text.lines import (
    FORMATS,
    Cells,
    TextFile,
    cells_of,
    is_saved_dataset,
    json_value,
    need,
    suffix_of,
    text_file,
)
from headcount.text.sentence import Item, Pair, Sentence

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


def read_rows(path: str | Path, *, header: bool = True, ragged: bool = False) -> Table:
    """Read a file of rows; without a header its columns are called 0, 1, 2 and so on.

    Blank lines are skipped. A row with more or fewer cells than the first is an error; in a
    `ragged` file a row may have more, which are not read. A .parquet, an .arrow and the folder of a
    dataset saved by Hugging Face's datasets are read too.
    """
    shards = sorted(Path(path).glob("*.arrow")) if is_saved_dataset(path) else [Path(path)]
    name, parts = str(path), []
    if shards and {one.suffix.lower() for one in shards} <= {".arrow", ".parquet"}:
        for shard in shards:
            text_file(shard)  # one that is not there is told as any other
            read = plugins.get("parts", "binary records")
            parts.append(read(shard, FORMATS[shard.suffix.lower()]))
    else:
        file, suffix = text_file(path), suffix_of(path)
        name = file.name
        if suffix in (".jsonl", ".ndjson"):
            parts = [object_records(file, strict=True, even=True)]
        else:
            parts = [cell_records(file, header=header, commas=suffix == ".csv", ragged=ragged)]
    columns = parts[0].columns
    if len(set(columns)) < len(columns):
        raise InputError(
            f"{name} names a column twice in its header: {', '.join(columns)}; if the first line "
            "is an example, say header=no and name columns by number from 0."
        )
    rows = tuple(
        TableRow(line, dict(zip(part.columns, cells, strict=True)))
        for part in parts
        for line, cells in part.rows(Counter(), range(len(columns)))
    )
    if not rows:
        named = parts[0].header and columns
        why = "has a header and no examples" if named else "is empty: it has no examples"
        raise InputError(f"{name} {why}.")
    return Table(name, columns, rows)


#: Source and target, by number from 0 or by the header's names.
Columns = tuple[int | str, int | str]


# --- Tables of any length as a corpus: which column is the text ---------------------------------

#: What people call a column of texts, and two columns of pairs, in lower case.
TEXT_NAMES = (
    *("text", "sentence", "sentences", "content", "document", "review", "review_text", "body"),
    *("article", "abstract", "comment", "message", "tweet", "utterance", "passage", "paragraph"),
)
PAIR_NAMES = (
    ("source", "target"),
    ("src", "tgt"),
    ("sentence1", "sentence2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
)
_OTHER_NAMES = ("label", "labels", "id", "idx", "score", "rating")
_HEADINGS = {*TEXT_NAMES, *_OTHER_NAMES, *(name for pair in PAIR_NAMES for name in pair)}
#: So many rows are looked at to tell texts from labels, and are read at once from a binary file.
_LOOK, _CHUNK = 100, 256


@dataclass(frozen=True)
class Records:
    """Rows of any number that can be gone through again and again, a few in memory at a time."""

    name: str
    #: The names of the columns; numbers from 0 where none are written down.
    columns: tuple[str, ...]
    #: Each row with its number from 1, and the cells of some columns, by their places.
    rows: Callable[[Counter[str], Sequence[int]], Iterator[tuple[int, Sequence[Any]]]]
    #: Lines that were taken for a header.
    header: int = 0
    #: Whether two columns of text without known names are a pair, though there be more.
    pairs_first: bool = False

    def items(self, places: Sequence[int], skipped: Counter[str]) -> Iterator[Item]:
        """Sentences from one column, pairs from two; a row that lacks a text is counted."""
        skipped["columns not read"] += len(self.columns) - len(places)
        skipped["header lines"] += self.header
        for number, cells in self.rows(skipped, places):
            texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
            if len(texts) < len(places):
                skipped["rows without text"] += 1
            elif len(texts) == 1:
                yield Sentence(texts[0], line=number)
            else:
                yield Pair(texts[0], texts[1], number)

    def find(self, column: str | int) -> int:
        """The place of a column, by its name or its number from 0."""
        return self.columns.index(column_name(column, self.columns, self.name))

    def text_places(self) -> list[int]:
        """One column of text, or two of a pair: known by name, or the only ones that hold text.

        A column of numbers or of labels is never half of a pair.
        """
        named = {name.strip().lower(): place for place, name in enumerate(self.columns)}
        for pair in PAIR_NAMES:
            if set(pair) <= set(named):
                return [named[name] for name in pair]
        for name in TEXT_NAMES:
            if name in named:
                return [named[name]]
        everything = range(len(self.columns))
        seen = [cells for _, cells in islice(self.rows(Counter(), everything), _LOOK)]
        texts = [place for place in everything if _holds_text([row[place] for row in seen])]
        if len(texts) == 1:
            return texts
        if len(texts) == 2 or (self.pairs_first and texts[:2] == [0, 1]):
            return texts[:2]
        has = "no column of text" if not texts else f"{len(texts)} columns that could be the text"
        raise InputError(
            f"{self.name} has {has} among {', '.join(self.columns[:12]) or 'none'}; name the one "
            "to read with --input column=NAME (column=), or two of a pair with columns=."
        )


def _holds_text(cells: Sequence[Any]) -> bool:
    """Whether cells are texts and not numbers, labels or something that is no string."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    if not texts or len(texts) < len([cell for cell in cells if cell is not None]) / 2:
        return False
    if all(is_number(text) for text in texts):
        return False
    repeated = len(texts) >= 6 and len(set(texts)) <= len(texts) / 3
    return not (repeated and all(len(text.split()) == 1 for text in texts))


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_header(cells: Sequence[str], commas: bool) -> bool:
    """Whether a first row names columns: by known names; between commas, also by short words."""
    names = [cell.strip() for cell in cells]
    if any(name.lower() in _HEADINGS for name in names):
        return not any(is_number(name) for name in names)
    short = all(name and len(name) <= 40 and len(name.split()) <= 3 for name in names)
    words = not any(is_number(name) or name[-1:] in ".!?" for name in names)
    return commas and short and words and len(set(names)) == len(names)


def cell_records(
    file: TextFile, *, header: bool | None, commas: bool, ragged: bool = False
) -> Records:
    """A file of cells; its first line is a header if that is said, or can be seen."""

    def even(skipped: Counter[str]) -> Iterator[Cells]:
        """The rows, each with as many cells as the first; a `ragged` one may have more."""
        width = 0
        for number, cells in cells_of(file, skipped, commas=commas):
            width = width or len(cells)
            if len(cells) < width or (len(cells) > width and not ragged):
                count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
                raise InputError(
                    f"{file.name}, line {number} has {count} where the first line has {width}; "
                    f"give every line the same number of {'commas' if commas else 'tabs'}."
                )
            yield number, cells[:width]

    _, first = next(even(Counter()), (1, []))
    named = _is_header(first, commas) if header is None else header

    def rows(skipped: Counter[str], places: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        found = islice(even(skipped), 1 if named else 0, None)
        return ((number, [cells[place] for place in places]) for number, cells in found)

    columns = first if named else [str(number) for number in range(len(first))]
    return Records(file.name, tuple(columns), rows, int(named), pairs_first=not commas)


def object_records(file: TextFile, strict: bool = False, even: bool = False) -> Records:
    """JSON objects, a line each; the first has all columns.

    A line that is no object is counted, or with `strict` refused; with `even` one that lacks a
    column, too.
    """
    first = next((line for _, line in file.filled(Counter())), "{}")
    found = json_value(first, f"{file.name}, line 1")
    columns = tuple(found) if isinstance(found, dict) else ()

    def rows(skipped: Counter[str], places: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        wanted = [columns[place] for place in places]
        for number, line in file.filled(skipped):
            where = f"{file.name}, line {number}"
            try:
                row = json_value(line, where)
                if not isinstance(row, dict):
                    raise Fault(
                        f"{where} is a JSON {type(row).__name__}; give an object with named "
                        'fields, e.g. {"text": "...", "label": 1}.',
                        "lines that are no JSON object",
                    )
                for name in wanted:
                    need(
                        not even or name in row,
                        where,
                        f"has no '{name}', which the first line has; give every object the same "
                        "keys",
                        "lines with missing keys",
                    )
            except Fault as fault:
                if strict:
                    raise
                skipped[fault.reason] += 1
                continue
            yield number, [row.get(name) for name in wanted]

    return Records(file.name, columns, rows)


def dataset_records(dataset: Any) -> Records:
    """The rows of a `datasets` object, of which only columns and iteration are used."""
    names = dataset.column_names or list(next(iter(dataset), {}))

    def rows(skipped: Counter[str], places: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        wanted = [names[place] for place in places]
        # Other columns may be images: they are not even decoded.
        some = dataset.select_columns(wanted) if hasattr(dataset, "select_columns") else dataset
        for number, row in enumerate(some, start=1):
            yield number, [row.get(name) for name in wanted]

    split = getattr(dataset, "split", None)
    about = getattr(getattr(dataset, "info", None), "dataset_name", None)
    name = " ".join(str(part) for part in (about or "dataset", split) if part is not None)
    return Records(name, tuple(names), rows)


def column_name(column: str | int, columns: Sequence[str], name: str) -> str:
    """The name of a column, given by its name or its number from 0."""
    if str(column) in columns:
        return str(column)
    if str(column).isdecimal() and int(column) < len(columns):
        return columns[int(column)]
    near = difflib.get_close_matches(str(column), columns, n=1)
    hint = f" (closest: {near[0]})" if near else ""
    only = "; a tab stands between the columns of a .tsv" if list(columns) == ["0"] else ""
    raise InputError(f"{name} has no column '{column}'{hint}; it has {', '.join(columns)}{only}.")
