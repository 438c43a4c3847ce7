"""Ambiguous pronouns from GAP's TSV (Webster et al. 2018): a text, a pronoun, two names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from headcount.errors import InputError
from headcount.text.cells import tab_cells
from headcount.text.faults import Fault, sound
from headcount.text.lines import TextFile
from headcount.text.sentence import Sentence, Span, Word
from headcount.text.splitting import split_words

__all__ = ["HEADER", "read_gap"]

#: The columns that must be there, by which GAP's files are known.
HEADER = (
    *("ID", "Text", "Pronoun", "Pronoun-offset"),
    *("A", "A-offset", "A-coref", "B", "B-offset", "B-coref"),
)
_TRUTH = {"TRUE": True, "FALSE": False}

Row = tuple[int, Mapping[str, str]]


def read_gap(file: TextFile, skipped: Counter[str], *, strict: bool = False) -> Iterator[Sentence]:
    """The texts of a file, with the pronoun and the names it may mean.

    The pronoun and the name that it means are one cluster; a name that it does not mean is a
    cluster of one. The comments ``pronoun``, ``A`` and ``B`` say which word each of them starts
    at, ``A-coref`` and ``B-coref`` whether it is meant.
    """
    return sound(_rows(file, skipped), lambda row: _sentence(row, file.name), skipped, strict)


def _rows(file: TextFile, skipped: Counter[str]) -> Iterator[Row]:
    names: list[str] = []
    for number, cells in tab_cells(file):
        if not any(cell.strip() for cell in cells):
            skipped["blank lines"] += 1
        elif not names:
            names = cells
            _check_header(names, file.name)
        else:
            yield number, dict(zip(names, cells, strict=False))


def _check_header(names: list[str], name: str) -> None:
    missing = [column for column in HEADER if column not in names]
    if missing:
        raise InputError(
            f"{name} is not a GAP file: its first line does not name {', '.join(missing)}; "
            f"GAP has {', '.join(HEADER)}."
        )


def _sentence(row: Row, name: str) -> Sentence:
    number, cells = row
    where = f"{name}, line {number}"
    if len(cells) < len(HEADER):
        raise Fault(
            f"{where} has {len(cells)} columns; GAP has {len(HEADER)} or more.",
            "lines with missing columns",
        )
    words = split_words(cells["Text"])
    spans = {key: _span(cells, key, words, where) for key in ("Pronoun", "A", "B")}
    meant = {key: _truth(cells, key, where) for key in ("A", "B")}
    return Sentence(
        cells["Text"],
        words,
        comments=_comments(cells, spans),
        line=number,
        clusters=_clusters(spans, meant),
    )


def _span(cells: Mapping[str, str], key: str, words: tuple[Word, ...], where: str) -> Span:
    """The words of the pronoun or a name, whose offset must be right."""
    text, name, offset = cells["Text"], cells[key], cells[f"{key}-offset"]
    start = int(offset) if offset.isdecimal() else -1
    end = start + len(name)
    inside = [
        number
        for number, word in enumerate(words)
        if word.start is not None and word.end is not None and word.start < end and start < word.end
    ]
    if start < 0 or not inside or text[start:end] != name:
        raise Fault(
            f"{where} has '{name}' at {offset}, where the text has "
            f"'{text[max(start, 0) : max(end, 0)]}'.",
            "lines with a wrong offset",
        )
    return Span(inside[0], inside[-1])


def _truth(cells: Mapping[str, str], key: str, where: str) -> bool:
    said = cells[f"{key}-coref"].upper()
    if said not in _TRUTH:
        raise Fault(
            f"{where} has {key}-coref '{cells[f'{key}-coref']}'; it is TRUE or FALSE.",
            "lines without TRUE or FALSE",
        )
    return _TRUTH[said]


def _clusters(spans: Mapping[str, Span], meant: Mapping[str, bool]) -> tuple[tuple[Span, ...], ...]:
    together = [spans["Pronoun"], *(spans[key] for key in ("A", "B") if meant[key])]
    alone = [(spans[key],) for key in ("A", "B") if not meant[key]]
    return tuple(sorted([tuple(sorted(set(together))), *alone]))


def _comments(cells: Mapping[str, str], spans: Mapping[str, Span]) -> dict[str, str]:
    kept = {"sent_id": cells["ID"], "A-coref": cells["A-coref"], "B-coref": cells["B-coref"]}
    return kept | {
        "pronoun": str(spans["Pronoun"].first),
        "A": str(spans["A"].first),
        "B": str(spans["B"].first),
    }
