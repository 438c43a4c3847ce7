"""Which reader a corpus file needs: by what was asked, by its suffix, or by its first line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headcount.errors import InputError, UsageError
from headcount.text import coref, gap, predicates
from headcount.text.conll import read_conll
from headcount.text.conllu import read_conllu
from headcount.text.entities import entity_passages
from headcount.text.lines import TextFile
from headcount.text.passages import PASSAGE
from headcount.text.sentence import Item, Pair, Sentence
from headcount.text.tsv import Columns, read_pairs

__all__ = ["How", "Reader", "kept", "reader_for"]

#: One pass over a corpus; what it leaves out goes into the counter, by reason.
Reader = Callable[[Counter[str]], Iterator[Item]]


@dataclass(frozen=True)
class How:
    """How a file is to be read, where its format leaves a choice."""

    #: Source and target of a pair file, by number or name.
    columns: Columns = (0, 1)
    #: Whether a pair file's first line names its columns; None: in .csv and for named columns.
    header: bool | None = None
    #: Words of a passage: documents with coreference instead of sentences.
    passage: int | None = None
    #: The comment of a treebank that holds the translation: pairs instead of sentences.
    translation: str | None = None
    #: The treebank of the documents that a coreference file marks.
    trees: Iterable[Sentence] | None = None
    #: Whether a faulty sentence is refused instead of skipped.
    strict: bool = False


def reader_for(file: TextFile, format: str, how: How) -> Reader:
    """The reader of a file whose format is known, or shows in its first line."""
    format = _told_apart(file, format)
    if how.translation is not None and format not in ("conllu", "conll"):
        raise UsageError(f"{file.name} is {format}; only a treebank's comments hold translations.")
    if format == "txt":
        return lambda skipped: _plain(file, skipped)
    if format in ("tsv", "csv"):
        return _pairs(file, how, commas=format == "csv")
    return kept(_annotated(file, format, how))


def kept(reader: Reader) -> Reader:
    """Read once, then from memory: treebanks are small and slow to read."""
    memory: list[Item] = []
    left_out: Counter[str] = Counter()

    def again(skipped: Counter[str]) -> Iterator[Item]:
        if not memory:
            left_out.clear()
            # Filled in one go, so that a pass broken off never leaves half a treebank behind.
            memory.extend(list(reader(left_out)))
        skipped.update(left_out)
        yield from memory

    return again


def _annotated(file: TextFile, format: str, how: How) -> Reader:
    strict, most = how.strict, how.passage or PASSAGE
    if format == "gap":
        return lambda skipped: gap.read_gap(file, skipped, strict=strict)
    if format == "predicates":
        return lambda skipped: predicates.read_predicates(file, skipped, strict=strict)
    if format == "coref":
        return lambda skipped: coref.read_coref(
            file, skipped, passage=most, trees=how.trees, strict=strict
        )
    read = read_conll if format == "conll" else read_conllu
    if how.passage is not None:
        return lambda skipped: entity_passages(
            read(file, skipped, strict=strict), skipped, passage=most, strict=strict
        )
    if how.translation is not None:
        return lambda skipped: _translated(
            read(file, skipped, strict=strict), how.translation or "", file.name
        )
    return lambda skipped: read(file, skipped, strict=strict)


def _pairs(file: TextFile, how: How, commas: bool) -> Reader:
    header = commas if how.header is None else how.header
    return lambda skipped: read_pairs(file, skipped, how.columns, header=header, commas=commas)


def _plain(file: TextFile, skipped: Counter[str]) -> Iterator[Sentence]:
    for number, line in file.lines():
        if line.strip():
            yield Sentence(line, line=number)
        else:
            skipped["blank lines"] += 1


def _translated(sentences: Iterable[Sentence], comment: str, name: str) -> Iterator[Pair]:
    for sentence in sentences:
        found = sentence.comments.get(comment, "")
        if not found.strip():
            others = ", ".join(key for key in sentence.comments if key.startswith("text_"))
            raise InputError(
                f"{name}, the sentence from line {sentence.line}, has no comment '{comment}'; "
                f"translations stand in comments such as {others or '# text_de = ...'}."
            )
        yield Pair(sentence.text, found, sentence.line, (sentence, None))


def _told_apart(file: TextFile, format: str) -> str:
    """The format, told by the first line where a suffix stands for several."""
    if format == "jsonl":
        return _kind_of_records(file)
    if format == "tsv" and set(gap.HEADER) <= set(_first_line(file).split("\t")):
        return "gap"
    return format


def _kind_of_records(file: TextFile) -> str:
    try:
        found: Any = json.loads(_first_line(file) or "{}")
    except json.JSONDecodeError:
        found = {}
    keys = list(found) if isinstance(found, dict) else []
    for format, needed in (("coref", coref.KEYS), ("predicates", predicates.KEYS)):
        if set(needed) <= set(keys):
            return format
    raise InputError(
        f"{file.name} has a first line with {', '.join(keys) or 'no keys'}; JSON lines of a corpus "
        f"have {' and '.join(coref.KEYS)} (coreference) or {' and '.join(predicates.KEYS)} "
        "(predicates); say which they should be with --format (format=)."
    )


def _first_line(file: TextFile) -> str:
    return next((line for _, line in file.lines() if line.strip()), "")
