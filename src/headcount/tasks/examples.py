"""Examples of a task from wherever they are: a list in hand, or the columns of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from headcount.errors import InputError
from headcount.text import (
    Pair,
    Sentence,
    Table,
    is_saved_dataset,
    read_corpus,
    read_rows,
    suffix_of,
    text_file,
    texts_of,
)

# --- Examples in hand ---------------------------------------------------------------------------

Label = str | int | float
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One text, or two, and its label: a class, or a number.

    >>> Labelled("A fine film.", "positive").second is None
    True
    """

    text: str
    label: Label
    second: str | None = None
    line: int | None = field(default=None, compare=False)


def example_name(number: int, line: int | None = None) -> str:
    """How a message names an example, counted from 1.

    >>> example_name(2, 7)
    'Example 3 (line 7)'
    """
    return f"Example {number + 1}" + ("" if line is None else f" (line {line})")


def content(example: Any) -> Any:
    """What an example says, wherever it stood.

    >>> content(Pair("Rain.", "Regen.", line=7))
    ('Rain.', 'Regen.')
    """
    if isinstance(example, Labelled):
        return example.text, example.second, example.label
    return texts_of(example) if isinstance(example, Pair | Sentence) else example


def read_each(
    items: Iterable[Any], read: Callable[[Any, str], T], kind: str, shape: str
) -> tuple[T, ...]:
    """Read items in hand one by one; none at all is an error."""
    items = rows_in_hand(items)
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InputError(
            f"Examples of the kind {kind} are a list of {shape}, or the path of a file, not of the "
            f"type {type(items).__name__}."
        )
    found = tuple(read(item, example_name(number)) for number, item in enumerate(items))
    if not found:
        raise InputError(f"There are no examples; tasks of the kind {kind} take a list of {shape}.")
    return found


def rows_in_hand(items: Any) -> Any:
    """Rows of a DataFrame or of a split of Hugging Face datasets as mappings; all else as it is.

    >>> import pandas as pd
    >>> rows_in_hand(pd.DataFrame({"text": ["A fine film."], "label": [1]}))
    [{'text': 'A fine film.', 'label': 1}]
    """
    if isinstance(items, Mapping) and items and all(map(_is_split, items.values())):
        raise InputError(
            f"The examples are {len(items)} splits ({', '.join(map(str, items))}); give one of "
            f"them, e.g. dataset['{next(iter(items))}']."
        )
    if hasattr(items, "columns") and hasattr(items, "to_dict"):
        return items.to_dict("records")
    return items


def _is_split(one: Any) -> bool:
    return hasattr(one, "column_names") or (hasattr(one, "columns") and hasattr(one, "to_dict"))


def column_value(row: Mapping[Any, Any], asked: Column, usual: Sequence[str], what: str) -> Any:
    """A value of a row by the given name, or by a usual one.

    >>> column_value({"review": "Fine."}, "text", TEXT, "text")
    Traceback (most recent call last):
    headcount.errors.InputError: There is no column 'text' for the text; there are review.
    """
    names = usual if asked is None else (asked,)
    for name in names:
        if name in row:
            return row[name]
    wanted = f"'{asked}'" if asked is not None else " or ".join(f"'{name}'" for name in usual)
    raise InputError(
        f"There is no column {wanted} for the {what}; there are {', '.join(map(str, row))}"
        f"{'.' if asked is not None else f'; name one with {what}=.'}"
    )


def pair(item: Any, where: str) -> Pair:
    """A source with its target, from a (source, target) or a mapping."""
    if isinstance(item, Mapping):
        item = (item.get("source", ""), item.get("target", ""))
    if not isinstance(item, Pair):
        item = Pair(*parts_of(item, where, (2,), "(source, target)"))
    for side, text in (("source", item.source), ("target", item.target)):
        must_be_text(text, where, side)
    return item


def sentence(item: Any, where: str) -> Sentence:
    """One text."""
    if isinstance(item, Mapping):
        item = item.get("text", "")
    found = item if isinstance(item, Sentence) else Sentence(item)
    must_be_text(found.text, where, "text")
    return found


def parts_of(item: Any, where: str, sizes: Sequence[int], shape: str) -> Sequence[Any]:
    """The parts of an example, of which there are as many as one of `sizes`."""
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise InputError(f"{where} is a {type(item).__name__}; give {shape}.")
    if len(item) not in sizes:
        raise InputError(f"{where} has {len(item)} parts; give {shape}.")
    return item


def must_be_text(text: Any, where: str, part: str) -> None:
    """Refuse a part of an example that is no text, or an empty one."""
    if not isinstance(text, str):
        raise InputError(f"{where} has a {part} of the type {type(text).__name__}; give a string.")
    if not text.strip():
        raise InputError(f"{where} has no {part}; fill it in or drop the example.")


# --- Examples of a task from wherever they are --------------------------------------------------

#: Names that columns usually have.
TEXT = ("text", "sentence", "text1", "sentence1")

IN_HAND = "examples in hand"
Column = str | int | None


class FoundExamples(NamedTuple):
    """Examples, and where they were found."""

    examples: tuple[Any, ...]
    name: str


def read_each_row(
    table: Table, make: Callable[[Any], Any], read: Callable[[Any, str], T]
) -> tuple[T, ...]:
    """Examples made of the rows of a table; errors name the line."""
    return tuple(read(make(row), f"{table.name}, line {row.line}") for row in table.rows)


def read_translations(
    source: Any, *, columns: tuple[Column, Column] = (None, None), header: bool | None = None
) -> FoundExamples:
    """Sources with their targets.

    A .tsv has no header unless columns are named: its first two columns are source and target.
    """
    if not isinstance(source, str | Path):
        shape = "(source, target) pairs"
        items = [_sides(item, columns) for item in _items(source)]
        return FoundExamples(read_each(items or source, pair, "translation", shape), IN_HAND)
    if not is_saved_dataset(source):
        text_file(source)  # a missing file with an odd suffix is above all missing
    numbered = all(column is None or str(column).isdecimal() for column in columns)
    binary = Path(source).is_dir() or Path(source).suffix.lower() in (".arrow", ".parquet")
    if numbered and not header and not binary and suffix_of(source) in (".tsv", ".txt"):
        places = [usual if given is None else int(given) for usual, given in enumerate(columns)]
        corpus = read_corpus(source, format="tsv", columns=(places[0], places[1]))
        return FoundExamples(tuple(corpus), corpus.name)
    table = read_rows(source, header=header is not False)
    if "translation" in table.columns:
        return read_translations([row.cells for row in table.rows], columns=columns)
    first, other = (
        table.find(column, (side,), side)
        for column, side in zip(columns, ("source", "target"), strict=True)
    )
    rows = read_each_row(
        table, lambda row: Pair(row.cells[first], row.cells[other], row.line), pair
    )
    return FoundExamples(rows, table.name)


def _items(source: Any) -> list[Any]:
    """Rows in hand as a list; empty for what is none, which whoever reads it tells."""
    rows = rows_in_hand(source)
    none = isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable)
    return [] if none else list(rows)


def _sides(item: Any, columns: tuple[Column, Column]) -> Any:
    """The two sides of a row by their names; ``{"translation": {"en": ..., "de": ...}}``, too.

    >>> _sides({"translation": {"en": "Rain.", "de": "Regen."}}, (None, None))
    ('Rain.', 'Regen.')
    """
    if not isinstance(item, Mapping):
        return item
    inner = item.get("translation")
    row = inner if isinstance(inner, Mapping) else item
    if isinstance(inner, Mapping) and columns == (None, None) and len(row) == 2:
        return tuple(row.values())
    return tuple(
        column_value(row, column, (side,), side)
        for column, side in zip(columns, ("source", "target"), strict=True)
    )


def read_texts(
    source: Any, *, kind: str, text: Column = None, header: bool = True
) -> FoundExamples:
    """Single texts: a line each in a .txt or .conllu, else the column of a file."""
    if not isinstance(source, str | Path):
        items = [
            column_value(item, text, TEXT, "text") if isinstance(item, Mapping) else item
            for item in _items(source)
        ]
        return FoundExamples(read_each(items or source, sentence, kind, "texts"), IN_HAND)
    if text is None and not {".tsv", ".csv", ".jsonl", ".ndjson"} & {*Path(source).suffixes}:
        corpus = read_corpus(source)
        return FoundExamples(tuple(corpus), corpus.name)
    table = read_rows(source, header=header)
    column = table.find(text, TEXT, "text")
    rows = read_each_row(table, lambda row: Sentence(row.cells[column], line=row.line), sentence)
    return FoundExamples(rows, table.name)
