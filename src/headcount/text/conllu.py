"""Sentences from CoNLL-U: words, trees, multiword tokens, and each word's place in the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELD_PARSERS, parse_comment_line, parse_line

from headcount.errors import InputError
from headcount.text.lines import TextFile
from headcount.text.sentence import Multiword, Sentence, Word

__all__ = ["read_conllu"]

_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Enhanced dependencies are slow to read and nothing here looks at them.
_PARSERS: dict[str, Callable[[list[str], int], Any]] = {
    **DEFAULT_FIELD_PARSERS,
    "deps": lambda cells, column: None,
}
# The parser takes two spaces for a tab, which would tear a form that holds them.
_SPACES = re.compile(" {2,}")

Token = Mapping[str, Any]


def read_conllu(file: TextFile, skipped: Counter[str]) -> Iterator[Sentence]:
    """The sentences of a file; empty nodes are left out and counted.

    >>> import io
    >>> lines = ["1-2 zum _ _ _ _ _ _ _ _", "1 zu _ _ _ _ 0 root _ _", "2 dem _ _ _ _ 1 det _ _"]
    >>> raw = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> sentence, = read_conllu(TextFile("x.conllu", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.text, [(word.form, word.start, word.end) for word in sentence.words]
    ('zum', [('zu', 0, 3), ('dem', 0, 3)])
    """
    for block in _blocks(file):
        sentence = _sentence(block, file.name, skipped)
        if sentence is not None:
            yield sentence


def _blocks(file: TextFile) -> Iterator[list[tuple[int, str]]]:
    """Runs of lines between blank lines."""
    block: list[tuple[int, str]] = []
    for number, line in file.lines():
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _sentence(block: list[tuple[int, str]], name: str, skipped: Counter[str]) -> Sentence | None:
    comments = _comments(block)
    tokens = [_token(line, number, name) for number, line in block if not line.startswith("#")]
    if not tokens:
        skipped["comments without a sentence"] += 1
        return None
    first = block[0][0]
    words = [token for token in tokens if isinstance(token["id"], int)]
    _check_numbers(tokens, len(words), f"{name}, the sentence from line {first}")
    skipped["empty nodes"] += sum(_joint(token) == "." for token in tokens)
    text, spans = _place(tokens, comments.get("text"), skipped)
    return Sentence(
        text=text,
        words=tuple(_word(token, spans[token["id"]]) for token in words),
        multiwords=tuple(_multiword(token) for token in tokens if _joint(token) == "-"),
        comments=comments,
        line=first,
    )


def _comments(block: list[tuple[int, str]]) -> dict[str, str]:
    pairs = [pair for _, line in block if line.startswith("#") for pair in parse_comment_line(line)]
    return {key: value for key, value in pairs if value is not None}


def _token(line: str, number: int, name: str) -> Token:
    cells = line.count("\t") + 1
    if cells != len(_FIELDS):
        raise InputError(
            f"{name}, line {number} has {cells} columns; CoNLL-U has {len(_FIELDS)}, "
            "with tabs between them."
        )
    try:
        token: Token = parse_line(_SPACES.sub(" ", line), _FIELDS, _PARSERS)
    except ParseException as error:
        raise InputError(f"{name}, line {number} is not CoNLL-U: {error}") from error
    return token


def _check_numbers(tokens: list[Token], count: int, where: str) -> None:
    """Words count 1, 2, 3, ..., and a multiword token spans words that are there."""
    numbers = [token["id"] for token in tokens if isinstance(token["id"], int)]
    if numbers != list(range(1, count + 1)) or not numbers:
        raise InputError(f"{where}, has words numbered {numbers}; CoNLL-U counts 1, 2, 3, ...")
    for token in tokens:
        if _joint(token) == "-" and token["id"][2] > count:
            raise InputError(
                f"{where}, has a multiword token {token['id'][0]}-{token['id'][2]} "
                f"but only {count} words."
            )


def _joint(token: Token) -> str:
    """``-`` for a multiword token, ``.`` for an empty node, nothing for a word."""
    return "" if isinstance(token["id"], int) else str(token["id"][1])


def _word(token: Token, span: tuple[int, int]) -> Word:
    start, end = span
    return Word(
        form=token["form"],
        lemma=_given(token["lemma"]),
        upos=_given(token["upos"]),
        xpos=_given(token["xpos"]),
        feats=token["feats"] or {},
        head=token["head"],
        deprel=_given(token["deprel"]),
        misc=token["misc"] or {},
        start=start,
        end=end,
    )


def _given(value: str | None) -> str | None:
    return None if value in (None, "_") else value


def _multiword(token: Token) -> Multiword:
    first, _, last = token["id"]
    return Multiword(first, last, token["form"])


def _place(
    tokens: list[Token], text: str | None, skipped: Counter[str]
) -> tuple[str, dict[int, tuple[int, int]]]:
    """The sentence's text, and where each word stands in it.

    Where the ``# text`` comment disagrees with the words, the words win: places must be true.
    """
    surface = _surface(tokens)
    joined = _join(surface)
    written = joined if text is None else text
    starts = _find(surface, written)
    if starts is None:
        skipped["text comments that disagree with the words"] += 1
        written = joined
        starts = _find(surface, written)
    assert starts is not None  # joined forms are always found again
    forms = {token["id"]: token["form"] for token in tokens if isinstance(token["id"], int)}
    spans: dict[int, tuple[int, int]] = {}
    for token, start in zip(surface, starts, strict=True):
        spans.update(_spans(token, start, forms))
    return written, spans


def _surface(tokens: list[Token]) -> list[Token]:
    """What is written, in order: multiword tokens instead of their words, no empty nodes."""
    written, covered = [], 0
    for token in tokens:
        if _joint(token) == "-":
            covered = token["id"][2]
            written.append(token)
        elif not _joint(token) and token["id"] > covered:
            written.append(token)
    return written


def _join(surface: list[Token]) -> str:
    gaps = ["" if (token["misc"] or {}).get("SpaceAfter") == "No" else " " for token in surface]
    return "".join(token["form"] + gap for token, gap in zip(surface, gaps, strict=True)).rstrip()


def _find(surface: list[Token], text: str) -> list[int] | None:
    """Where each form starts in the text, with only white space between; None if that fails."""
    starts, here = [], 0
    for token in surface:
        while here < len(text) and text[here].isspace():
            here += 1
        if not text.startswith(token["form"], here):
            return None
        starts.append(here)
        here += len(token["form"])
    return None if text[here:].strip() else starts


def _spans(
    token: Token, start: int, forms: Mapping[int, str]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The place of a token's word or words: split where the parts spell it, else shared."""
    end = start + len(token["form"])
    if not _joint(token):
        yield token["id"], (start, end)
        return
    numbers = range(token["id"][0], token["id"][2] + 1)
    spelled = "".join(forms[number] for number in numbers) == token["form"]
    for number in numbers:
        stop = start + len(forms[number]) if spelled else end
        yield number, (start, stop)
        start = stop if spelled else start
