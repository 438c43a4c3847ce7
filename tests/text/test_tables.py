"""Tests of `text/tables.py`."""

from __future__ import annotations

import gzip
import io
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest

from headcount.errors import InputError
from headcount.text.lines import TextFile, suffix_of
from headcount.text.sentence import Pair
from headcount.text.tables import read_pairs, read_rows


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_tabs_separate_and_quotes_are_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", 'sentence\tlabel\n"He said\t1\nso\t0\n\n')
    table = read_rows(path)
    assert table.columns == ("sentence", "label")
    assert [row.cells["sentence"] for row in table.rows] == ['"He said', "so"]
    assert [row.line for row in table.rows] == [2, 3]


def test_commas_separate_and_quotes_quote(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.csv", 'text,label\n"a, ""b""\nc",1\n\nd,0\n')
    table = read_rows(path)
    assert [row.cells["text"] for row in table.rows] == ['a, "b"\nc', "d"]
    assert [row.line for row in table.rows] == [2, 5]


def test_json_lines_are_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", '{"text": "a", "label": 1}\n\n{"text": "b", "label": 0}\n')
    table = read_rows(path)
    assert table.columns == ("text", "label")
    assert [(row.line, row.cells["label"]) for row in table.rows] == [(1, 1), (3, 0)]


def test_without_a_header_columns_are_numbers(tmp_path: Path) -> None:
    table = read_rows(write(tmp_path / "dev.tsv", "gj04\t1\t\tA b.\n"), header=False)
    assert table.columns == ("0", "1", "2", "3")
    assert table.rows[0].cells["3"] == "A b."


def test_packed_files_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    raw = "text\tlabel\nü\t1\n".encode("utf-8-sig")
    for name, opened in (("a.tsv.xz", lzma.open), ("a.tsv.gz", gzip.open)):
        with opened(tmp_path / name, "wb") as file:
            file.write(raw)
        assert read_rows(tmp_path / name).rows[0].cells == {"text": "ü", "label": "1"}


def test_columns_are_found_by_name_number_or_usual_name(tmp_path: Path) -> None:
    table = read_rows(write(tmp_path / "a.tsv", "sentence\tgrade\nx\t1\n"))
    assert table.find(None, ("text", "sentence"), "text") == "sentence"
    assert table.find("grade", (), "label") == "grade"
    assert table.find(1, (), "label") == "grade"
    with pytest.raises(InputError) as error:
        table.find("sentense", (), "text")
    assert str(error.value) == (
        f"{table.name} has no column 'sentense' (closest: sentence); it has sentence, grade."
    )
    with pytest.raises(InputError) as error:
        table.find(None, ("label", "score"), "label")
    assert str(error.value) == (
        f"{table.name} has no column label or score for the label; it has sentence, grade: "
        "name one with label=COLUMN; where the first line is no header, say header=no and columns "
        "by number (header=no,text=0,label=1)."
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "", " is empty: it has no examples."),
        ("a.jsonl", "\n", " is empty: it has no examples."),
        ("a.tsv", "text\tlabel\n", " has a header and no examples."),
        (
            "a.tsv",
            "text\tlabel\na\t1\nb\n",
            ", line 3 has 1 column where the first line has 2; give every line the same number "
            "of tabs.",
        ),
        (
            "a.csv",
            "text,label\na,1,2\n",
            ", line 2 has 3 columns where the first line has 2; give every line the same number "
            "of commas.",
        ),
        ("a.csv", 'text,label\n"a,1\n', ", line 2 is not proper CSV: unexpected end of data."),
        (
            "a.tsv",
            "text\ttext\na\tb\n",
            " names a column twice in its header: text, text; if the first line is an example, say "
            "header=no and name columns by number from 0.",
        ),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b"}\n',
            ", line 2 has no 'label', which the first line has; give every object the same keys.",
        ),
        (
            "a.jsonl",
            "[1]\n",
            ", line 1 is a JSON list; give an object with named fields, e.g. "
            '{"text": "...", "label": 1}.',
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(InputError) as error:
        read_rows(path)
    assert str(error.value) == f"{path}{message}"


def test_rows_of_a_ragged_file_may_be_longer_but_not_shorter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nc\td\te\n")
    table = read_rows(path, header=False, ragged=True)
    assert [list(row.cells.values()) for row in table.rows] == [["a", "b"], ["c", "d"]]
    with pytest.raises(InputError, match="line 2 has 1 column where the first line has 2"):
        read_rows(write(path, "a\tb\nc\n"), header=False, ragged=True)


def test_broken_json_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1 is not JSON: Expecting"):
        read_rows(write(tmp_path / "a.jsonl", "{text}\n"))


def test_missing_files_and_unknown_suffixes_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_rows(tmp_path / "dev.tsv")
    with pytest.raises(InputError, match=r"has the suffix '.xlsx'.*known are .tsv"):
        read_rows(write(tmp_path / "a.xlsx", "x"))
    assert suffix_of("A.CSV.gz") == ".csv"


# ---  -------------------------------------------------------------------------------------------


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
