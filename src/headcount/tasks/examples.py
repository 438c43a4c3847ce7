"""Examples of a task from wherever they are: a list in hand, or the columns of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headcount.errors import InputError
from headcount.text import Pair, Sentence, column_name, read_corpus, read_rows, texts_of

# --- Examples in hand ---------------------------------------------------------------------------

Label = str | int | float


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


def pair(item: Any, where: str) -> Pair:
    """A source with its target, from a (source, target) or a mapping."""
    if isinstance(item, Mapping):
        item = Pair(item.get("source", ""), item.get("target", ""), item.get("line"))
    elif not isinstance(item, Pair):
        item = Pair(*parts_of(item, where, (2,), "(source, target)"))
    for side, text in (("source", item.source), ("target", item.target)):
        must_be_text(text, where, side)
    return item


def sentence(item: Any, where: str) -> Sentence:
    """One text."""
    if isinstance(item, Mapping):
        item = Sentence(item.get("text", ""), line=item.get("line"))
    found = item if isinstance(item, Sentence) else Sentence(item)
    must_be_text(found.text, where, "text")
    return found


# --- Examples of a task from wherever they are --------------------------------------------------

#: Names that columns usually have.
TEXT = ("text", "sentence", "text1", "sentence1")

Column = str | int | None


class FoundExamples(NamedTuple):
    """Examples, and where they were found."""

    examples: tuple[Any, ...]
    name: str


class PartOf(NamedTuple):
    """Where a part of an example stands in a row: the column asked for, or one usually called so.

    An optional part may be missing, unless its column was asked for.
    """

    asked: Column = None
    usual: tuple[str, ...] = ()
    optional: bool = False


def read_examples(
    source: Any,
    read: Callable[[Any, str], Any],
    parts: Mapping[str, PartOf],
    kind: str,
    shape: str,
    *,
    header: bool = True,
    ragged: bool = False,
) -> FoundExamples:
    """The examples of a file or in hand; `read` takes what was given, or a row's parts by name.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"review": ["A fine film."]})
    >>> read_examples(rows, sentence, {"text": PartOf("review")}, "lm", "texts").examples[0].text
    'A fine film.'
    """
    rows: list[tuple[Any, str, int | None]]
    hint, name = "", "examples in hand"
    if isinstance(source, str | Path):
        table = read_rows(source, header=header, ragged=ragged)
        rows = [(row.cells, f"{table.name}, line {row.line}", row.line) for row in table.rows]
        hint = (
            "; where the first line is no header, say header=no and columns by number "
            "(header=no,text=0,label=1)"
        )
        name = table.name
    else:
        given = enumerate(_in_hand(source, kind, shape))
        rows = [(item, example_name(number), None) for number, item in given]
    found = []
    for row, where, line in rows:
        item = row
        if isinstance(row, Mapping):
            row = _translation_in(row)
            item = {what: _value(row, part, what, where, hint) for what, part in parts.items()}
            item["line"] = line
        found.append(read(item, where))
    return FoundExamples(tuple(found), name)


def _in_hand(items: Any, kind: str, shape: str) -> list[Any]:
    """Examples as a list: also the rows of a DataFrame, or of a split of a data set."""
    splits = items.values() if isinstance(items, Mapping) else ()
    if any(hasattr(one, name) for one in splits for name in ("column_names", "columns")):
        raise InputError(
            f"The examples are {len(items)} splits ({', '.join(map(str, items))}); give one of "
            f"them, e.g. dataset['{next(iter(items))}']."
        )
    if hasattr(items, "columns") and hasattr(items, "to_dict"):
        items = items.to_dict("records")
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InputError(
            f"Examples of the kind {kind} are a list of {shape}, or the path of a file, not of the "
            f"type {type(items).__name__}."
        )
    found = list(items)
    if not found:
        raise InputError(f"There are no examples; tasks of the kind {kind} take a list of {shape}.")
    return found


def _translation_in(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The row, or the translation in it: ``{"translation": {"en": ..., "de": ...}}``.

    >>> _translation_in({"translation": {"en": "Rain.", "de": "Regen."}})["source"]
    'Rain.'
    """
    inner = row.get("translation")
    if not isinstance(inner, Mapping):
        return row
    return dict(zip(("source", "target"), inner.values(), strict=False)) | dict(inner)


def _value(row: Mapping[Any, Any], part: PartOf, what: str, where: str, hint: str) -> Any:
    """One part of an example, by the column that was asked for, or by a usual one."""
    if part.asked is not None:
        return row[column_name(part.asked, [*map(str, row)], where)]
    name = next((name for name in part.usual if name in row), None)
    if name is None and not part.optional:
        raise InputError(
            f"{where} has no column {' or '.join(part.usual)} for the {what}; it has "
            f"{', '.join(map(str, row))}: name one with {what}=COLUMN{hint}."
        )
    return None if name is None else row[name]


def read_translations(
    source: Any, *, columns: tuple[Column, Column] = (None, None), header: bool | None = None
) -> FoundExamples:
    """Sources with their targets.

    A .tsv has no header unless columns are named: its first two columns are source and target.
    """
    if header is None:
        plain = isinstance(source, str | Path) and {".tsv", ".txt"} & {*Path(source).suffixes}
        numbered = all(column is None or str(column).isdecimal() for column in columns)
        header = not (plain and numbered)
    if not header:
        columns = (columns[0] or 0, 1 if columns[1] is None else columns[1])
    parts = {
        side: PartOf(c, (side,)) for side, c in zip(("source", "target"), columns, strict=True)
    }
    return read_examples(
        source, pair, parts, "translation", "(source, target) pairs", header=header
    )


def read_texts(
    source: Any, *, kind: str, text: Column = None, header: bool = True
) -> FoundExamples:
    """Single texts: a line each in a .txt or .conllu, else the column of a file."""
    tables = {".tsv", ".csv", ".jsonl", ".ndjson"}
    if isinstance(source, str | Path) and text is None and not tables & {*Path(source).suffixes}:
        corpus = read_corpus(source)
        return FoundExamples(tuple(corpus), corpus.name)
    return read_examples(
        source, sentence, {"text": PartOf(text, TEXT)}, kind, "texts", header=header
    )
