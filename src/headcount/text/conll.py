"""Sentences from plain CoNLL files, such as Stanford dependencies: eight columns or ten.

The columns are id, form, lemma, coarse tag, tag, features, head and relation; of two further ones
the last may hold ``SpaceAfter=No``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headcount.text.conllu import Block, blocks, comments_of
from headcount.text.faults import Fault, sound
from headcount.text.lines import TextFile
from headcount.text.placing import Form, place
from headcount.text.sentence import Sentence, Word
from headcount.text.tree import check_tree

__all__ = ["read_conll"]

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
    return sound(blocks(file), lambda block: _sentence(block, file.name, skipped), skipped, strict)


def _sentence(block: Block, name: str, skipped: Counter[str]) -> Sentence | None:
    rows = [_row(line, number, name) for number, line in block if not line.startswith("#")]
    if not rows:
        skipped["comments without a sentence"] += 1
        return None
    where = f"{name}, the sentence from line {block[0][0]},"
    _check_numbers(rows, where)
    comments = comments_of(block)
    forms = [Form(row[_FORM], "SpaceAfter=No" not in row[_MISC].split("|")) for row in rows]
    text, places = place(forms, comments.get("text"), skipped)
    words = tuple(_word(row, *span) for row, span in zip(rows, places, strict=True))
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


def _check_numbers(rows: list[list[str]], where: str) -> None:
    numbers = [row[_ID] for row in rows]
    if numbers != [str(number) for number in range(1, len(rows) + 1)]:
        raise Fault(
            f"{where} has words numbered {', '.join(numbers)}; CoNLL counts 1, 2, 3, ... "
            "(a file with multiword tokens is CoNLL-U: --format conllu).",
            "sentences with wrong numbers",
        )


def _word(row: list[str], start: int, end: int) -> Word:
    coarse, tag = _given(row[_COARSE]), _given(row[_TAG])
    return Word(
        form=row[_FORM],
        lemma=_given(row[_LEMMA]),
        upos=coarse if coarse in _UNIVERSAL else None,
        xpos=tag or coarse,
        head=None if row[_HEAD] == "_" else int(row[_HEAD]),
        deprel=_given(row[_RELATION]),
        start=start,
        end=end,
    )


def _given(cell: str) -> str | None:
    return None if cell in ("", "_") else cell
