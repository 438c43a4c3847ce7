"""Examples of a task from wherever they are: a list in hand, or the columns of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headcount.errors import InputError
from headcount.tasks.example import Labelled, pair, read_each, sentence
from headcount.tasks.table_file import Table, read_table, suffix_of
from headcount.text.corpus import read_corpus
from headcount.text.lines import text_file
from headcount.text.sentence import Pair, Sentence

__all__ = ["Columns", "Found", "labelled_rows", "read_labelled", "read_pairs", "read_texts"]

#: Names that columns usually have.
TEXT = ("text", "sentence", "text1", "sentence1")
SECOND = ("text2", "sentence2")
LABEL = ("label", "score")

IN_HAND = "examples in hand"
Column = str | int | None


class Found(NamedTuple):
    """Examples, and where they were found."""

    examples: tuple[Any, ...]
    name: str


@dataclass(frozen=True)
class Columns:
    """Which columns of a file to read: names, numbers from 0, or None for the usual names."""

    text: Column = None
    text2: Column = None
    label: Column = None
    header: bool = True


def read_labelled(
    source: Any,
    read: Callable[[Any, str], Labelled],
    *,
    kind: str,
    shape: str,
    columns: Columns,
) -> Found:
    """Labelled examples, each gone through `read`; all with a second text, or none."""
    if isinstance(source, str | Path):
        table = read_table(source, header=columns.header)
        found = Found(tuple(labelled_rows(table, columns, read)), table.name)
    else:
        found = Found(read_each(source, read, kind, shape), IN_HAND)
    paired = [example.second is not None for example in found.examples]
    if len(set(paired)) > 1:
        odd = paired.index(not paired[0])
        raise InputError(
            f"Example 1 of {found.name} has {'two texts' if paired[0] else 'one text'} and example "
            f"{odd + 1} has {'one' if paired[0] else 'two'}; give all of them the same."
        )
    return found


def labelled_rows(
    table: Table, columns: Columns, read: Callable[[Any, str], Labelled]
) -> list[Labelled]:
    """The examples in some columns of a table, each with its line."""
    text = table.find(columns.text, TEXT, "text")
    second = _second(table, columns)
    label = table.find(columns.label, LABEL, "label")
    return [
        read(
            Labelled(row.cells[text], row.cells[label], second and row.cells[second], row.line),
            f"{table.name}, line {row.line}",
        )
        for row in table.rows
    ]


def _second(table: Table, columns: Columns) -> str | None:
    """The column of second texts: as named, or a usual one where no column was named at all."""
    if columns.text2 is not None:
        return table.find(columns.text2, SECOND, "text2")
    return table.has(SECOND) if columns.text is None else None


def read_pairs(
    source: Any, *, columns: tuple[Column, Column] = (None, None), header: bool | None = None
) -> Found:
    """Sources with their targets.

    A .tsv has no header unless columns are named: its first two columns are source and target.
    """
    if not isinstance(source, str | Path):
        return Found(read_each(source, pair, "translation", "(source, target) pairs"), IN_HAND)
    text_file(source)  # a missing file with an odd suffix is above all missing
    numbered = all(column is None or str(column).isdecimal() for column in columns)
    if numbered and not header and suffix_of(source) in (".tsv", ".txt"):
        places = [usual if given is None else int(given) for usual, given in enumerate(columns)]
        corpus = read_corpus(source, format="tsv", columns=(places[0], places[1]))
        return Found(tuple(corpus), corpus.name)
    return _paired_rows(read_table(source, header=header is not False), *columns)


def _paired_rows(table: Table, source: Column, target: Column) -> Found:
    first = table.find(source, ("source",), "source")
    other = table.find(target, ("target",), "target")
    rows = [
        pair(Pair(row.cells[first], row.cells[other], row.line), f"{table.name}, line {row.line}")
        for row in table.rows
    ]
    return Found(tuple(rows), table.name)


def read_texts(source: Any, *, kind: str, text: Column = None, header: bool = True) -> Found:
    """Single texts: a line each in a .txt or .conllu, else the column of a file."""
    if not isinstance(source, str | Path):
        return Found(read_each(source, sentence, kind, "texts"), IN_HAND)
    if text is None and _is_plain(source):
        corpus = read_corpus(source)
        return Found(tuple(corpus), corpus.name)
    table = read_table(source, header=header)
    column = table.find(text, TEXT, "text")
    rows = [
        sentence(Sentence(row.cells[column], line=row.line), f"{table.name}, line {row.line}")
        for row in table.rows
    ]
    return Found(tuple(rows), table.name)


def _is_plain(source: str | Path) -> bool:
    """Whether a file is a text a line, or a treebank: something else than rows with columns."""
    return not any(
        suffix in (".tsv", ".csv", ".jsonl", ".ndjson") for suffix in Path(source).suffixes
    )
