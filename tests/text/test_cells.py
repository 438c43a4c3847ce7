from __future__ import annotations

import pytest
from corpus_files import file_of

from headcount.errors import InputError
from headcount.text.lines import comma_cells, tab_cells


def test_tabs_divide_and_quotes_are_characters() -> None:
    assert list(tab_cells(file_of('a\t"b\n\nc', "t.tsv"))) == [
        (1, ["a", '"b']),
        (2, [""]),
        (3, ["c"]),
    ]


def test_commas_divide_and_quotes_quote() -> None:
    found = list(comma_cells(file_of('a,"b, ""c"""\n"two\nlines",d\ne,f\n', "t.csv")))
    assert found == [(1, ["a", 'b, "c"']), (2, ["two\nlines", "d"]), (4, ["e", "f"])]


def test_an_open_quote_is_told() -> None:
    with pytest.raises(InputError, match=r"t\.csv, line 2 is not proper CSV"):
        list(comma_cells(file_of('a,b\n"c,d\n', "t.csv")))
