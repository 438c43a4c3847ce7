"""Tests of `text/tables.py`."""

from __future__ import annotations

import gzip
import io
import lzma
from collections import Counter
from pathlib import Path

import pytest

from headcount.errors import InputError
from headcount.text.lines import TextFile, suffix_of
from headcount.text.sentence import Item, Pair
from headcount.text.tables import cell_records, column_name, read_rows


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


def test_columns_are_found_by_name_or_number() -> None:
    assert column_name("grade", ("sentence", "grade"), "a.tsv") == "grade"
    assert column_name(1, ("sentence", "grade"), "a.tsv") == "grade"
    with pytest.raises(InputError) as error:
        column_name("sentense", ("sentence", "grade"), "a.tsv")
    assert str(error.value) == (
        "a.tsv has no column 'sentense' (closest: sentence); it has sentence, grade."
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


# --- Pairs --------------------------------------------------------------------------------------


def pairs(
    text: str,
    columns: tuple[int | str, int | str] = (0, 1),
    skipped: Counter[str] | None = None,
    *,
    header: bool = False,
    commas: bool = False,
) -> list[Item]:
    file = TextFile("p.tsv", lambda: io.BytesIO(text.encode()))
    records = cell_records(file, header=header, commas=commas)
    places = [records.find(column) for column in columns]
    return list(records.items(places, Counter() if skipped is None else skipped))


def refused(text: str, columns: tuple[int | str, int | str] = (0, 1), **how: bool) -> str:
    with pytest.raises(InputError) as caught:
        pairs(text, columns, **how)
    return str(caught.value)


def test_two_columns() -> None:
    found = pairs("Rain.\tRegen.\r\nSnow.\tSchnee.\n")
    assert found == [Pair("Rain.", "Regen."), Pair("Snow.", "Schnee.")]
    assert [pair.line for pair in found] == [1, 2]


def test_quotes_are_ordinary_characters() -> None:
    assert pairs('"Rain\t„Regen"\n') == [Pair('"Rain', '„Regen"')]


def test_what_is_not_read_is_counted() -> None:
    skipped: Counter[str] = Counter()
    found = pairs("Rain.\tRegen.\tD\n\n \t \t \nSnow.\t \tI\n", skipped=skipped)
    assert found == [Pair("Rain.", "Regen.")]
    assert +skipped == {"blank lines": 2, "columns not read": 1, "rows without text": 1}


def test_other_columns_can_be_chosen() -> None:
    assert pairs("7\tRain.\tRegen.\tyes\n", (1, 2)) == [Pair("Rain.", "Regen.")]
    assert pairs("Rain.\tRegen.\n", (1, 0)) == [Pair("Regen.", "Rain.")]


def test_columns_that_are_not_there() -> None:
    assert refused("Rain.\tRegen.\n", (1, 2)) == "p.tsv has no column '2'; it has 0, 1."
    assert "has no column '-1'" in refused("Rain.\tRegen.\n", (-1, 0))
    assert refused("Rain fell.\n") == (
        "p.tsv has no column '1'; it has 0; a tab stands between the columns of a .tsv."
    )


def test_uneven_columns_name_file_and_line() -> None:
    assert refused("a\tb\n\na\tb\tc\n") == (
        "p.tsv, line 3 has 3 columns where the first line has 2; "
        "give every line the same number of tabs."
    )
    assert "p.tsv, line 2 has 1 column where" in refused("a\tb\na\n")
    assert "the same number of commas" in refused("a,b\na,b,c\n", commas=True)


def test_a_header_names_the_columns() -> None:
    skipped: Counter[str] = Counter()
    text = "id\ten\tde\n1\tRain.\tRegen.\n"
    assert pairs(text, ("en", "de"), skipped, header=True) == [Pair("Rain.", "Regen.")]
    assert skipped == {"columns not read": 1, "header lines": 1}
    assert refused(text, ("en", "fr"), header=True) == (
        "p.tsv has no column 'fr'; it has id, en, de."
    )


def test_commas_between_columns() -> None:
    raw = 'en,de\n"Rain, snow.",Regen.\n\n"Two\nlines",Zwei\n'
    found = pairs(raw, header=True, commas=True)
    assert found == [Pair("Rain, snow.", "Regen."), Pair("Two\nlines", "Zwei")]
    assert [pair.line for pair in found] == [2, 4]
