"""The files of the bundled sample that follow from `sample.conllu`: run it after a change there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from headcount.bundle import sample

#: First and last word of a mention, counted from 0 through the passage, both ends in.
Span = tuple[int, int]

# A bracket of Entity=: "(e1" opens, "e1)" closes, "(e1)" is one word.
_BRACKET = re.compile(r"\((\w+)(\))?|(\w+)\)")


class Passage(NamedTuple):
    """A few connected sentences, as words, and the clusters of mentions that mean the same."""

    doc: str
    sents: tuple[tuple[str, ...], ...]
    clusters: tuple[tuple[Span, ...], ...]


def passages() -> list[Passage]:
    """The passages, each with its clusters in the order of their first mentions.

    >>> passage = passages()[0]
    >>> words = [word for sentence in passage.sents for word in sentence]
    >>> [" ".join(words[first : last + 1]) for first, last in passage.clusters[0]]
    ['The old kettle', 'it']
    """
    documents: list[list[list[list[str]]]] = []
    names = []
    for block in sample.path().read_text(encoding="utf8").strip().split("\n\n"):
        if begun := re.search(r"^# newdoc id = (.*)$", block, re.MULTILINE):
            names.append(begun[1])
            documents.append([])
        documents[-1].append(_words(block))
    return [_passage(name, sents) for name, sents in zip(names, documents, strict=True)]


def _words(block: str) -> list[list[str]]:
    """The cells of each word's line; a multiword token's own line is left out."""
    rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
    return [row for row in rows if row[0].isdigit()]


def _passage(name: str, sents: list[list[list[str]]]) -> Passage:
    clusters: dict[str, list[Span]] = {}
    for entity, span in sorted(_mentions([row for rows in sents for row in rows])):
        clusters.setdefault(entity, []).append(span)
    return Passage(
        doc=name,
        sents=tuple(tuple(row[1] for row in rows) for rows in sents),
        clusters=tuple(sorted(tuple(spans) for spans in clusters.values())),
    )


def _mentions(rows: list[list[str]]) -> Iterator[tuple[str, Span]]:
    """The mentions that the words' ``Entity=`` brackets mark, with the entity's name."""
    opened: list[tuple[str, int]] = []
    for place, row in enumerate(rows):
        entity = re.search(r"Entity=([^|]+)", row[9])
        for starts, one_word, _ends in _BRACKET.findall(entity[1] if entity else ""):
            if starts:
                opened.append((starts, place))
            if one_word or not starts:
                name, first = opened.pop()
                yield name, (first, place)


def derived() -> dict[str, str]:
    """What each of the other files must hold, by name.

    >>> derived()["sample.txt"].count("\\n") == len(sample.sentences())
    True
    """
    return {
        "sample.txt": _lines(sample.sentences()),
        "sample.en-de.tsv": _lines(["\t".join(pair) for pair in sample.pairs()]),
        "coref.jsonl": _lines([_json(passage) for passage in passages()]),
    }


def _lines(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _json(passage: Passage) -> str:
    """One document a line: ``doc``, ``sents``, ``clusters`` of ``[first, last]``."""
    record = {"doc": passage.doc, "sents": passage.sents, "clusters": passage.clusters}
    return json.dumps(record, ensure_ascii=False)


if __name__ == "__main__":
    for name, text in derived().items():
        sample.path(name).write_text(text, encoding="utf8", newline="\n")
