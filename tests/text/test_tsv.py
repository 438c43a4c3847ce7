from __future__ import annotations

import io
import re
from collections import Counter

import pytest

from headcount.errors import InputError
from headcount.text.lines import TextFile
from headcount.text.sentence import Pair
from headcount.text.tables import read_pairs


def pairs(
    text: str, columns: tuple[int, int] = (0, 1), skipped: Counter[str] | None = None
) -> list[Pair]:
    file = TextFile("p.tsv", lambda: io.BytesIO(text.encode()))
    return list(read_pairs(file, Counter() if skipped is None else skipped, columns))


def refused(text: str, columns: tuple[int, int] = (0, 1)) -> str:
    with pytest.raises(InputError) as caught:
        pairs(text, columns)
    return str(caught.value)


def test_two_columns() -> None:
    found = pairs("Rain.\tRegen.\r\nSnow.\tSchnee.\n")
    assert found == [Pair("Rain.", "Regen."), Pair("Snow.", "Schnee.")]
    assert [pair.line for pair in found] == [1, 2]


def test_quotes_are_ordinary_characters() -> None:
    assert pairs('"Rain\t„Regen"\n') == [Pair('"Rain', '„Regen"')]


def test_blank_lines_and_further_columns_are_counted() -> None:
    skipped: Counter[str] = Counter()
    found = pairs("Rain.\tRegen.\tD\n\n \t \t \nSnow.\tSchnee.\tI\n", skipped=skipped)
    assert found == [Pair("Rain.", "Regen."), Pair("Snow.", "Schnee.")]
    assert skipped == {"blank lines": 2, "columns not read": 1}


def test_other_columns_can_be_chosen() -> None:
    assert pairs("7\tRain.\tRegen.\tyes\n", (1, 2)) == [Pair("Rain.", "Regen.")]
    assert pairs("Rain.\tRegen.\n", (1, 0)) == [Pair("Regen.", "Rain.")]


def test_columns_that_are_not_there() -> None:
    said = refused("Rain.\tRegen.\n", (1, 2))
    assert said == (
        "p.tsv has 2 columns, so columns 1 and 2 cannot both be read; they count from 0 to 1."
    )
    assert "cannot both be read" in refused("Rain.\tRegen.\n", (-1, 0))


def test_uneven_columns_name_file_and_line() -> None:
    assert refused("a\tb\n\na\tb\tc\n") == (
        "p.tsv, line 3 has 3 columns where the first line has 2; "
        "give every line the same number of tabs."
    )
    assert "p.tsv, line 2 has 1 column where" in refused("a\tb\na\n")


@pytest.mark.parametrize(
    ("text", "side"),
    [("a\tb\na\t\n", "target"), ("a\tb\n\tb\n", "source"), ("a\tb\na\t \n", "target")],
)
def test_a_missing_side_names_file_and_line(text: str, side: str) -> None:
    assert refused(text) == f"p.tsv, line 2 has no {side}; fill it in or drop the line."


def test_no_tab_at_all() -> None:
    said = refused("Rain fell.\n")
    assert re.match(r"p\.tsv, line 1 has no tab; a pair file has source and target", said)


def test_a_header_names_the_columns() -> None:
    skipped: Counter[str] = Counter()
    file = TextFile("p.tsv", lambda: io.BytesIO(b"id\ten\tde\n1\tRain.\tRegen.\n"))
    assert list(read_pairs(file, skipped, ("en", "de"))) == [Pair("Rain.", "Regen.")]
    assert skipped == {"columns not read": 1, "header lines": 1}
    assert list(read_pairs(file, Counter(), (1, 2), header=True)) == [Pair("Rain.", "Regen.")]
    with pytest.raises(InputError) as caught:
        list(read_pairs(file, Counter(), ("en", "fr")))
    assert str(caught.value) == "p.tsv has no column 'fr'; it has id, en, de."
    with pytest.raises(InputError, match=r"has no column 'dee' \(closest: de\)"):
        list(read_pairs(file, Counter(), ("en", "dee")))


def test_commas_between_columns() -> None:
    raw = b'en,de\n"Rain, snow.",Regen.\n\n"Two\nlines",Zwei\n'
    file = TextFile("p.csv", lambda: io.BytesIO(raw))
    found = list(read_pairs(file, Counter(), header=True, commas=True))
    assert found == [Pair("Rain, snow.", "Regen."), Pair("Two\nlines", "Zwei")]
    assert [pair.line for pair in found] == [2, 4]


def test_one_column_between_commas_is_told() -> None:
    file = TextFile("p.csv", lambda: io.BytesIO(b"Rain.\n"))
    with pytest.raises(InputError, match=r"p\.csv, line 1 has no comma; a pair file has source"):
        list(read_pairs(file, Counter(), commas=True))
    file = TextFile("p.csv", lambda: io.BytesIO(b"a,b\na,b,c\n"))
    with pytest.raises(InputError, match="give every line the same number of commas"):
        list(read_pairs(file, Counter(), commas=True))
