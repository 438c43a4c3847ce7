"""Treebanks: sentences from CoNLL-U, and from plain CoNLL files such as Stanford dependencies.

Words, trees and multiword tokens, and each word's place in the text, which is that of the ``text``
comment where the words agree with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from sys import getsizeof
from typing import Any

from conllu import parser
from conllu.exceptions import ParseException

from headcount import plugins
from headcount.errors import Fault, InputError, sound
from headcount.text import (
    AS_USUAL,
    Corpus,
    CorpusFormat,
    Form,
    Item,
    Line,
    Multiword,
    Pair,
    ReadOptions,
    Sentence,
    TextFile,
    Word,
    check_tree,
    divided,
    place_forms,
    sentences_of,
    whole_number,
)

_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Enhanced dependencies are slow to read and nothing here looks at them.
_PARSERS: dict[str, Callable[[list[str], int], Any]] = {
    **parser.DEFAULT_FIELD_PARSERS,
    "deps": lambda cells, column: None,
}
# The parser takes two spaces for a tab, which would tear a form that holds them.
_SPACES = re.compile(" {2,}")
#: Universal tags; any other coarse tag of a CoNLL file is the treebank's own.
_UNIVERSAL = frozenset(
    {
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON"),
        *("PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
    }
)
_NUMBERS = "sentences with wrong numbers"

#: The fields of a line by name, as the library `conllu` reads them: ``id`` is a word's number,
#: ``(1, "-", 2)`` for a multiword token or ``(1, ".", 1)`` for an empty node.
Token = Mapping[str, Any]


def read_conllu(
    file: TextFile, skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Item]:
    """The sentences of a file; empty nodes are left out and counted.

    A sentence that is no CoNLL-U or no tree is skipped and counted, or refused with `strict`.

    >>> import io
    >>> lines = ["1-2 zum _ _ _ _ _ _ _ _", "1 zu _ _ _ _ 0 root _ _", "2 dem _ _ _ _ 1 det _ _"]
    >>> raw = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> sentence, = read_conllu(TextFile("x.conllu", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.text, [(word.form, word.start, word.end) for word in sentence.words]
    ('zum', [('zu', 0, 3), ('dem', 0, 3)])
    """
    return _items(file, _conllu_token, skipped, how)


def read_conll(
    file: TextFile, skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Item]:
    """The sentences of a file; a faulty one is skipped and counted, or refused with `strict`.

    The columns are id, form, lemma, coarse tag, tag, features, head and relation; of two further
    ones the last may hold ``SpaceAfter=No``.

    >>> import io
    >>> lines = ["1 Rain rain NN NN _ 2 nsubj", "2 fell fall VBD VBD _ 0 root"]
    >>> raw = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> sentence, = read_conll(TextFile("x.conll", lambda: io.BytesIO(raw)), Counter())
    >>> sentence.text, [(word.head, word.deprel) for word in sentence.words]
    ('Rain fell', [(2, 'nsubj'), (0, 'root')])
    """
    return _items(file, _conll_token, skipped, how)


# --- One line -----------------------------------------------------------------------------------


def _conllu_token(line: str, where: str) -> Token:
    cells = line.count("\t") + 1
    if cells != len(_FIELDS):
        raise Fault(
            f"{where} has {cells} columns; CoNLL-U has {len(_FIELDS)}, with tabs between them.",
            "sentences with missing columns",
        )
    why: object = "it has no ID."
    try:
        token: Token = parser.parse_line(_SPACES.sub(" ", line), _FIELDS, _PARSERS)
        if token["id"] is not None:
            return token
    except ParseException as error:
        why = error
    except ValueError:  # Python reads no longer ones
        why = "it has a number of thousands of digits."
    raise Fault(f"{where} is not CoNLL-U: {why}", "sentences that are not CoNLL-U")


def _conll_token(line: str, where: str) -> Token:
    cells = line.split("\t")
    if len(cells) not in (8, 10):
        raise Fault(
            f"{where} has {len(cells)} columns; CoNLL has 8 or 10, with tabs between them (id, "
            "form, lemma, tag, tag, features, head, relation).",
            "sentences with missing columns",
        )
    number, form, lemma, coarse, tag, _, head, relation, _, misc = [*cells, "_", "_"][:10]
    if whole_number(number) is None:
        raise Fault(
            f"{where} has a word numbered '{number[:20]}'; CoNLL counts 1, 2, 3, ... "
            "(a file with multiword tokens is CoNLL-U: --input format=conllu).",
            _NUMBERS,
        )
    if head != "_" and whole_number(head) is None:
        raise Fault(
            f"{where} has the head '{head[:20]}'; a head is the number of a word, or 0.",
            "sentences with a head that is no number",
        )
    return {
        "id": whole_number(number),
        "form": form,
        "lemma": lemma,
        "upos": coarse if coarse in _UNIVERSAL else None,
        "xpos": parser.parse_nullable_value(tag) or coarse,
        "feats": None,
        "head": whole_number(head),
        "deprel": relation,
        "misc": parser.parse_dict_value(misc),
    }


# --- One sentence -------------------------------------------------------------------------------


def _items(
    file: TextFile, read: Callable[[str, str], Token], skipped: Counter[str], how: ReadOptions
) -> Iterator[Item]:
    """Sentences; passages of them with coreference, or pairs with a translation in a comment."""

    def sentence(block: list[Line]) -> Sentence | None:
        comments = _comments(block)
        tokens = [
            read(line, f"{file.name}, line {number}")
            for number, line in block
            if not line.startswith("#")
        ]
        if not tokens:
            skipped["comments without a sentence"] += 1
            return None
        where = f"{file.name}, the sentence from line {block[0][0]},"
        text, words = _words(tokens, comments.get("text"), where, skipped)
        check_tree(words, where, skipped)
        skipped.update("empty nodes" for token in tokens if _joint(token) == ".")
        return Sentence(
            text=text,
            words=words,
            multiwords=tuple(
                Multiword(token["id"][0], token["id"][2], token["form"])
                for token in tokens
                if _joint(token) == "-"
            ),
            comments=comments,
            line=block[0][0],
        )

    found = sound(_blocks(file), sentence, skipped, how.strict)
    if how.passage is not None:
        passages: Iterator[Item] = plugins.get("parts", "passages")(found, skipped, how)
        return passages
    return found if how.translation is None else _translated(found, how.translation, file.name)


#: Bytes that the lines of one sentence may take in memory: more than any text has.
_MOST = 16 << 20


def _blocks(file: TextFile) -> Iterator[list[Line]]:
    """Runs of lines between blank lines."""
    for filled, lines in groupby(file.lines(), key=lambda line: bool(line[1].strip())):
        block, size = list[Line](), 0
        for line in lines if filled else ():
            block.append(line)
            size += getsizeof(line[1])
            if size > _MOST:
                raise InputError(
                    f"{file.name} has a sentence from line {block[0][0]} of more than "
                    f"{_MOST >> 20} MiB; sentences have a blank line between them."
                )
        if block:
            yield block


def _comments(block: Sequence[Line]) -> dict[str, str]:
    """The comments of a sentence that have a name and a value."""
    pairs = [
        pair
        for _, line in block
        if line.startswith("#")
        for pair in parser.parse_comment_line(line)
    ]
    # A bare "newdoc" has no value, but it says something.
    return {key: value or "" for key, value in pairs if value is not None or key == "newdoc"}


def _joint(token: Token) -> str:
    """``-`` for a multiword token, ``.`` for an empty node, nothing for a word."""
    return "" if isinstance(token["id"], int) else str(token["id"][1])


def _words(
    tokens: Sequence[Token], text: str | None, where: str, skipped: Counter[str]
) -> tuple[str, tuple[Word, ...]]:
    """The text, and the words with their places in it."""
    rows = [token for token in tokens if not _joint(token)]
    numbers = [token["id"] for token in rows]
    if numbers != list(range(1, len(rows) + 1)) or not numbers:
        raise Fault(f"{where} has words numbered {numbers}; they count 1, 2, 3, ...", _NUMBERS)
    surface = list(_surface(tokens, len(rows), where))
    forms = [
        Form(token["form"], (token["misc"] or {}).get("SpaceAfter") != "No") for token, _ in surface
    ]
    written, places = place_forms(forms, text, skipped)
    spans: list[tuple[int, int]] = []
    for (token, inside), place in zip(surface, places, strict=True):
        spans += divided(token["form"], place, [rows[number - 1]["form"] for number in inside])
    return written, tuple(_word(row, *span) for row, span in zip(rows, spans, strict=True))


def _surface(tokens: Sequence[Token], count: int, where: str) -> Iterator[tuple[Token, range]]:
    """What is written, in order, with the numbers of its words: no empty nodes.

    A multiword token stands right before its words, which it covers.
    """
    here, covered = 0, 0
    for token in tokens:
        if _joint(token) == "-":
            first, _, last = token["id"]
            name = f"{where} has a multiword token {first}-{last}"
            if last > count:
                raise Fault(f"{name} but only {count} words.", _NUMBERS)
            if not covered < first == here + 1:
                raise Fault(f"{name} out of place; it stands before the line of {first}.", _NUMBERS)
            covered = last
            yield token, range(first, last + 1)
        elif not _joint(token):
            here = token["id"]
            if here > covered:
                yield token, range(here, here + 1)


def _word(token: Token, start: int, end: int) -> Word:
    return Word(
        form=token["form"],
        lemma=parser.parse_nullable_value(token["lemma"]),
        upos=parser.parse_nullable_value(token["upos"]),
        xpos=parser.parse_nullable_value(token["xpos"]),
        feats=token["feats"] or {},
        head=token["head"],
        deprel=parser.parse_nullable_value(token["deprel"]),
        misc=token["misc"] or {},
        start=start,
        end=end,
    )


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


#: Both among the formats of corpora.
CONLLU, CONLL = (CorpusFormat(read, translations=True) for read in (read_conllu, read_conll))


# --- Two corpora side by side, as pairs: a treebank and its translation -------------------------


def side_by_side(sources: Corpus, targets: Corpus) -> Corpus:
    """Pairs of the corpora's sentences, in order, each side with the words it has.

    >>> from headcount.text import read_corpus
    >>> found = side_by_side(read_corpus(["Rain.", "Go!"]), read_corpus(["Regen.", "Geh!"]))
    >>> [pair.target for pair in found]
    ['Regen.', 'Geh!']
    """
    for corpus in (sources, targets):
        if corpus.paired:
            raise InputError(f"{corpus.name} holds pairs already; give sentences.")
    if len(sources) != len(targets):
        raise InputError(
            f"{sources.name} has {len(sources)} sentences and {targets.name} has {len(targets)}; "
            "side by side they must have the same number."
        )

    def pairs(skipped: Counter[str]) -> Iterator[Pair]:
        skipped.update(sources.skipped + targets.skipped)
        for source, target in zip(sources, targets, strict=True):
            assert isinstance(source, Sentence) and isinstance(target, Sentence)  # noqa: PT018
            # Refuse sentences that say themselves that they are not each other's translation.
            first, second = (each.comments.get("sent_id") for each in (source, target))
            if first is not None and second is not None and first != second:
                raise InputError(
                    f"The sentences {first} and {second} stand side by side; the corpora must have "
                    "the same sentences in the same order."
                )
            annotated = (*sentences_of(source), *sentences_of(target))
            yield Pair(source.text, target.text, source.line, (annotated[0], annotated[1]))

    return Corpus(pairs, f"{sources.name} with {targets.name}")
