"""Sentences from CoNLL-U: words, trees, multiword tokens, and each word's place in the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELD_PARSERS, parse_comment_line, parse_line

from headcount.errors import Fault, sound
from headcount.text.lines import TextFile
from headcount.text.sentence import (
    Form,
    Multiword,
    Sentence,
    Word,
    check_tree,
    divided,
    place_forms,
)

# --- Sentences from CoNLL-U ---------------------------------------------------------------------

_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Enhanced dependencies are slow to read and nothing here looks at them.
_PARSERS: dict[str, Callable[[list[str], int], Any]] = {
    **DEFAULT_FIELD_PARSERS,
    "deps": lambda cells, column: None,
}
# The parser takes two spaces for a tab, which would tear a form that holds them.
_SPACES = re.compile(" {2,}")

Token = Mapping[str, Any]
#: The numbered lines of one sentence.
Block = list[tuple[int, str]]


def read_conllu(
    file: TextFile, skipped: Counter[str], *, strict: bool = False
) -> Iterator[Sentence]:
    """The sentences of a file; empty nodes are left out and counted.

    A sentence that is no CoNLL-U or no tree is skipped and counted, or refused with `strict`.

    >>> import io
    >>> lines = ["1-2 zum _ _ _ _ _ _ _ _", "1 zu _ _ _ _ 0 root _ _", "2 dem _ _ _ _ 1 det _ _"]
    >>> raw = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> sentence, = read_conllu(TextFile("x.conllu", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.text, [(word.form, word.start, word.end) for word in sentence.words]
    ('zum', [('zu', 0, 3), ('dem', 0, 3)])
    """
    return sound(blocks(file), lambda block: _sentence(block, file.name, skipped), skipped, strict)


def blocks(file: TextFile) -> Iterator[Block]:
    """Runs of lines between blank lines."""
    block: Block = []
    for number, line in file.lines():
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _sentence(block: Block, name: str, skipped: Counter[str]) -> Sentence | None:
    comments = comments_of(block)
    tokens = [_token(line, number, name) for number, line in block if not line.startswith("#")]
    if not tokens:
        skipped["comments without a sentence"] += 1
        return None
    first = block[0][0]
    where = f"{name}, the sentence from line {first},"
    words = [token for token in tokens if isinstance(token["id"], int)]
    _check_numbers(tokens, len(words), where)
    text, spans = _place(tokens, comments.get("text"), skipped)
    sentence = Sentence(
        text=text,
        words=tuple(_word(token, spans[token["id"]]) for token in words),
        multiwords=tuple(_multiword(token) for token in tokens if _joint(token) == "-"),
        comments=comments,
        line=first,
    )
    check_tree(sentence.words or (), where, skipped)
    skipped["empty nodes"] += sum(_joint(token) == "." for token in tokens)
    return sentence


def comments_of(block: Block) -> dict[str, str]:
    """The comments of a sentence that have a name and a value."""
    pairs = [pair for _, line in block if line.startswith("#") for pair in parse_comment_line(line)]
    # A bare "newdoc" has no value, but it says something.
    return {key: value or "" for key, value in pairs if value is not None or key == "newdoc"}


def _token(line: str, number: int, name: str) -> Token:
    cells = line.count("\t") + 1
    if cells != len(_FIELDS):
        raise Fault(
            f"{name}, line {number} has {cells} columns; CoNLL-U has {len(_FIELDS)}, "
            "with tabs between them.",
            "sentences with missing columns",
        )
    try:
        token: Token = parse_line(_SPACES.sub(" ", line), _FIELDS, _PARSERS)
    except ParseException as error:
        raise Fault(
            f"{name}, line {number} is not CoNLL-U: {error}", "sentences that are not CoNLL-U"
        ) from error
    return token


def _check_numbers(tokens: list[Token], count: int, where: str) -> None:
    """Words count 1, 2, 3, ..., and a multiword token spans words that are there."""
    numbers = [token["id"] for token in tokens if isinstance(token["id"], int)]
    if numbers != list(range(1, count + 1)) or not numbers:
        raise Fault(
            f"{where} has words numbered {numbers}; CoNLL-U counts 1, 2, 3, ...",
            "sentences with wrong numbers",
        )
    for token in tokens:
        if _joint(token) == "-" and token["id"][2] > count:
            raise Fault(
                f"{where} has a multiword token {token['id'][0]}-{token['id'][2]} "
                f"but only {count} words.",
                "sentences with wrong numbers",
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
    """The sentence's text, and where each word stands in it."""
    surface = _surface(tokens)
    forms = [Form(token["form"], not _closed(token)) for token in surface]
    written, places = place_forms(forms, text, skipped)
    words = {token["id"]: token["form"] for token in tokens if isinstance(token["id"], int)}
    spans: dict[int, tuple[int, int]] = {}
    for token, where in zip(surface, places, strict=True):
        spans.update(_spans(token, where, words))
    return written, spans


def _closed(token: Token) -> bool:
    return (token["misc"] or {}).get("SpaceAfter") == "No"


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


def _spans(
    token: Token, place: tuple[int, int], forms: Mapping[int, str]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The place of a token's word, or of its words."""
    first, last = (token["id"][0], token["id"][2]) if _joint(token) else (token["id"],) * 2
    numbers = range(first, last + 1)
    places = divided(token["form"], place, [forms[number] for number in numbers])
    yield from zip(numbers, places, strict=True)


# --- Sentences from plain CoNLL files, such as Stanford dependencies ----------------------------
# The columns are id, form, lemma, coarse tag, tag, features, head and relation; of two further ones
# the last may hold ``SpaceAfter=No``.

_WIDTHS = (8, 10)
_ID, _FORM, _LEMMA, _COARSE, _TAG, _FEATS, _HEAD, _RELATION, _, _MISC = range(10)
#: Universal tags; any other coarse tag is the treebank's own.
_UNIVERSAL = frozenset(
    {
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON"),
        *("PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
    }
)


def read_conll(
    file: TextFile, skipped: Counter[str], *, strict: bool = False
) -> Iterator[Sentence]:
    """The sentences of a file; a faulty one is skipped and counted, or refused with `strict`.

    >>> import io
    >>> lines = ["1 Rain rain NN NN _ 2 nsubj", "2 fell fall VBD VBD _ 0 root"]
    >>> raw = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> sentence, = read_conll(TextFile("x.conll", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.text, [(word.head, word.deprel) for word in sentence.words]
    ('Rain fell', [(2, 'nsubj'), (0, 'root')])
    """
    return sound(
        blocks(file), lambda block: _conll_sentence(block, file.name, skipped), skipped, strict
    )


def _conll_sentence(block: Block, name: str, skipped: Counter[str]) -> Sentence | None:
    rows = [_row(line, number, name) for number, line in block if not line.startswith("#")]
    if not rows:
        skipped["comments without a sentence"] += 1
        return None
    where = f"{name}, the sentence from line {block[0][0]},"
    _conll_check_numbers(rows, where)
    comments = comments_of(block)
    forms = [Form(row[_FORM], "SpaceAfter=No" not in row[_MISC].split("|")) for row in rows]
    text, places = place_forms(forms, comments.get("text"), skipped)
    words = tuple(_conll_word(row, *span) for row, span in zip(rows, places, strict=True))
    check_tree(words, where, skipped)
    return Sentence(text, words, comments=comments, line=block[0][0])


def _row(line: str, number: int, name: str) -> list[str]:
    """Ten cells; where the file has eight the last two are empty."""
    cells = line.split("\t")
    if len(cells) not in _WIDTHS:
        raise Fault(
            f"{name}, line {number} has {len(cells)} columns; CoNLL has 8 or 10, with tabs between "
            "them (id, form, lemma, tag, tag, features, head, relation).",
            "sentences with missing columns",
        )
    head = cells[_HEAD]
    if head != "_" and not head.isdecimal():
        raise Fault(
            f"{name}, line {number} has the head '{head}'; a head is the number of a word, or 0.",
            "sentences with a head that is no number",
        )
    return [*cells, "_", "_"][:10]


def _conll_check_numbers(rows: list[list[str]], where: str) -> None:
    numbers = [row[_ID] for row in rows]
    if numbers != [str(number) for number in range(1, len(rows) + 1)]:
        raise Fault(
            f"{where} has words numbered {', '.join(numbers)}; CoNLL counts 1, 2, 3, ... "
            "(a file with multiword tokens is CoNLL-U: --format conllu).",
            "sentences with wrong numbers",
        )


def _conll_word(row: list[str], start: int, end: int) -> Word:
    coarse, tag = _conll_given(row[_COARSE]), _conll_given(row[_TAG])
    return Word(
        form=row[_FORM],
        lemma=_conll_given(row[_LEMMA]),
        upos=coarse if coarse in _UNIVERSAL else None,
        xpos=tag or coarse,
        head=None if row[_HEAD] == "_" else int(row[_HEAD]),
        deprel=_conll_given(row[_RELATION]),
        start=start,
        end=end,
    )


def _conll_given(cell: str) -> str | None:
    return None if cell in ("", "_") else cell
