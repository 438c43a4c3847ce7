"""Predicates and their arguments from JSON lines, a sentence each: ``tokens`` and ``preds``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headcount.errors import sound
from headcount.text import (
    AS_USUAL,
    Argument,
    CorpusFormat,
    Line,
    Predicate,
    ReadOptions,
    Sentence,
    Span,
    TextFile,
    Word,
    check_tree,
    need,
    record,
    spaced,
)

#: What a line must have; ``upos``, ``head``, ``deprel`` and ``sent_id`` may be there too.
PREDICATE_KEYS = ("tokens", "preds")
_REASON = "lines with predicates outside the sentence"


def read_predicates(
    file: TextFile, skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Sentence]:
    """The sentences of a file; a predicate is ``{"i": word, "roleset": sense, "args": [...]}``.

    Arguments are ``[label, first, last]``, words counted from 0, both ends in. A line at fault is
    skipped and counted, or refused with `strict`.

    >>> import io
    >>> raw = b'{"tokens": ["Rain", "fell"], "preds": [{"i": 1, "args": [["ARG1", 0, 0]]}]}'
    >>> sentence, = read_predicates(TextFile("x.jsonl", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.predicates[0].arguments
    (Argument(label='ARG1', span=Span(first=0, last=0)),)
    """
    return sound(
        file.filled(skipped), lambda line: _sentence(line, file.name, skipped), skipped, how.strict
    )


def _sentence(line: Line, name: str, skipped: Counter[str]) -> Sentence:
    number, text = line
    found = record(text, f"{name}, line {number}", PREDICATE_KEYS, "a sentence with predicates")
    where = f"{name}, line {number},"
    words = _words(found, where)
    check_tree(words, where, skipped)
    predicates = found["preds"]
    need(isinstance(predicates, list), where, "has preds that are not a list", _REASON)
    return spaced(
        words,
        predicates=tuple(_predicate(each, len(words), where) for each in predicates),
        comments={key: str(found[key]) for key in ("sent_id", "exact") if key in found},
        line=number,
    )


def _words(found: Mapping[str, Any], where: str) -> list[Word]:
    tokens = found["tokens"]
    plain = isinstance(tokens, list) and all(isinstance(each, str) and each for each in tokens)
    need(plain and bool(tokens), where, "has tokens that are not words", "lines without a word")
    columns = [found.get(key) or [None] * len(tokens) for key in ("upos", "head", "deprel")]
    need(
        all(isinstance(each, list) and len(each) == len(tokens) for each in columns),
        where,
        f"has {len(tokens)} tokens and another number of upos, head or deprel",
        "lines with missing columns",
    )
    need(
        all(head is None or type(head) is int for head in columns[1]),
        where,
        "has heads that are no numbers",
        "lines with heads that are no numbers",
    )
    need(
        all(tag is None or isinstance(tag, str) for tag in [*columns[0], *columns[2]]),
        where,
        "has upos or deprel that are no words",
        "lines with upos or deprel that are no words",
    )
    return [
        Word(form, upos=upos, head=head, deprel=deprel)
        for form, upos, head, deprel in zip(tokens, *columns, strict=True)
    ]


def _predicate(given: Any, count: int, where: str) -> Predicate:
    known = isinstance(given, Mapping) and _is_word(given.get("i"), count)
    need(known, where, f"has a predicate that is none of its {count} words: {given}", _REASON)
    arguments = given.get("args") or []
    need(isinstance(arguments, list), where, "has args that are not a list", _REASON)
    return Predicate(
        given["i"], given.get("roleset"), tuple(_argument(each, count, where) for each in arguments)
    )


def _argument(given: Any, count: int, where: str) -> Argument:
    right = (
        isinstance(given, Sequence)
        and len(given) == 3
        and isinstance(given[0], str)
        and all(_is_word(place, count) for place in given[1:])
        and given[1] <= given[2]
    )
    need(
        right,
        where,
        f"has the argument {given}; it is [label, first, last], two of its {count} words",
        _REASON,
    )
    return Argument(given[0], Span(given[1], given[2]))


def _is_word(place: Any, count: int) -> bool:
    return type(place) is int and 0 <= place < count


#: Predicates among the formats of corpora.
PREDICATES = CorpusFormat(read_predicates, keys=PREDICATE_KEYS)
