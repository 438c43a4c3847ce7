"""Coreference from JSON lines: a document each, ``sents`` of words, ``clusters`` of mentions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headcount.text.clusters import checked_clusters
from headcount.text.documents import documents
from headcount.text.faults import sound
from headcount.text.joined import spaced
from headcount.text.lines import TextFile
from headcount.text.passages import PASSAGE, passages
from headcount.text.records import Line, lines, need, record
from headcount.text.sentence import Sentence, Word

__all__ = ["KEYS", "read_coref"]

#: What a line must have; ``doc`` names it, and mentions count words through the document.
KEYS = ("sents", "clusters")


def read_coref(
    file: TextFile,
    skipped: Counter[str],
    *,
    passage: int = PASSAGE,
    trees: Iterable[Sentence] | None = None,
    strict: bool = False,
) -> Iterator[Sentence]:
    """The passages of a file's documents, with their clusters.

    Texts are the words with spaces between, unless `trees` has the same document (``newdoc id``)
    in the same words: then its sentences are taken, with their true texts, tags and heads.

    >>> import io
    >>> raw = b'{"sents": [["Ann", "left", "."], ["She", "ran"]], "clusters": [[[0, 0], [3, 3]]]}'
    >>> passage, = read_coref(TextFile("x.jsonl", lambda: io.BytesIO(raw)), Counter())
    >>> passage.text, passage.clusters
    ('Ann left . She ran', ((Span(first=0, last=0), Span(first=3, last=3)),))
    """
    known = {} if trees is None else dict(documents(trees))

    def read(line: Line) -> list[Sentence]:
        return _passages(line, file.name, skipped, passage, known, strict)

    for found in sound(lines(file, skipped), read, skipped, strict):
        yield from found


def _passages(
    line: Line,
    name: str,
    skipped: Counter[str],
    passage: int,
    known: Mapping[str, list[Sentence]],
    strict: bool,
) -> list[Sentence]:
    number, _ = line
    where = f"{name}, line {number}"
    found = record(line, name, KEYS, "a document with coreference")
    _check(found, where)
    words = [sent for sent in found["sents"] if sent]
    count = sum(map(len, words))
    clusters = checked_clusters(found["clusters"], count, where, skipped, strict)
    doc = str(found.get("doc", number))
    sentences = [spaced(map(Word, sent), line=number) for sent in words]
    if known:
        sentences = _with_trees(sentences, known.get(doc, []), skipped)
    return list(passages(sentences, clusters, passage, doc))


def _check(found: Mapping[str, Any], where: str) -> None:
    sents, clusters = found["sents"], found["clusters"]
    need(
        isinstance(sents, list) and all(_words(sent) for sent in sents),
        where,
        "has sents that are not lists of words",
        "lines with sents that are not lists of words",
    )
    need(any(sents), where, "has no word", "lines without a word")
    need(
        isinstance(clusters, list) and all(isinstance(each, list) for each in clusters),
        where,
        "has clusters that are not lists of [first, last]",
        "lines with clusters that are not lists",
    )


def _words(sent: Any) -> bool:
    return isinstance(sent, list) and all(isinstance(word, str) and word for word in sent)


def _with_trees(
    sentences: list[Sentence], known: list[Sentence], skipped: Counter[str]
) -> list[Sentence]:
    """The treebank's sentences where they have the same words."""
    same = [_forms(each) for each in sentences] == [_forms(each) for each in known]
    if not same:
        skipped["trees of documents in other words"] += 1
    return known if same else sentences


def _forms(sentence: Sentence) -> list[str]:
    return [word.form for word in sentence.words or ()]
