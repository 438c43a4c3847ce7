from __future__ import annotations

from pathlib import Path

import pytest

from headcount.errors import InputError
from headcount.tasks.examples import (
    Columns,
    FoundExamples,
    Labelled,
    labelled,
    read_labelled,
    read_texts,
    read_translations,
)
from headcount.text.sentence import Pair


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(source: object, **columns: object) -> FoundExamples:
    return read_labelled(
        source,
        labelled,
        kind="classification",
        shape="(text, label)",
        columns=Columns(**columns),  # type: ignore[arg-type]
    )


def test_named_columns_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", "id\tq\ta\tgold\n1\tWho?\tMe.\tyes\n")
    found = read(path, text="q", text2="a", label="gold")
    assert found == FoundExamples((Labelled("Who?", "yes", "Me."),), str(path))
    assert found.examples[0].line == 2


def test_usual_columns_need_no_names(tmp_path: Path) -> None:
    single = write(tmp_path / "a.tsv", "sentence\tlabel\nGood.\t1\n")
    assert read(single).examples == (Labelled("Good.", "1"),)
    double = write(tmp_path / "b.tsv", "sentence1\tsentence2\tlabel\nA\tB\t1\n")
    assert read(double).examples == (Labelled("A", "1", "B"),)
    # Whoever names one text gets one text.
    assert read(double, text="sentence1").examples == (Labelled("A", "1"),)


def test_columns_are_numbers_where_there_is_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "x\t0\t\tBad is.\nx\t1\t\tGood.\n")
    found = read(path, text=3, label="1", header=False)
    assert found.examples == (Labelled("Bad is.", "0"), Labelled("Good.", "1"))


def test_an_empty_cell_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tlabel\nx\t1\n\t0\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == f"{path}, line 3 has no text; fill it in or drop the example."


def test_all_examples_have_one_text_or_all_have_two() -> None:
    with pytest.raises(InputError) as error:
        read([("a", 1), ("a", 0), ("a", "b", 1)])
    assert str(error.value) == (
        "Example 1 of examples in hand has one text and example 3 has two; give all of them the "
        "same."
    )


def test_pairs_need_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "test.tsv", "Rain.\tRegen.\nWind.\tWind.\n")
    assert read_translations(path).examples == (Pair("Rain.", "Regen."), Pair("Wind.", "Wind."))
    assert read_translations(str(path), columns=(1, 0)).examples[0] == Pair("Regen.", "Rain.")
    assert read_translations([("a", "b")]).examples == (Pair("a", "b"),)


def test_pairs_may_have_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "test.tsv", "de\ten\nRegen.\tRain.\n")
    assert read_translations(path, columns=("en", "de")).examples == (Pair("Rain.", "Regen."),)
    lines = write(tmp_path / "test.jsonl", '{"source": "Rain.", "target": "Regen."}\n')
    assert read_translations(lines).examples == (Pair("Rain.", "Regen."),)
    commas = write(tmp_path / "test.csv", "source,target\nRain.,Regen.\n")
    assert read_translations(commas).examples == (Pair("Rain.", "Regen."),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", ", line 2 has 1 column where the first line has 2"),
        ("a\tb\nc\t\n", ", line 2 has no target; fill it in or drop the line."),
        ("a\tb\n \tc\n", ", line 2 has no source; fill it in or drop the line."),
        ("", " is empty: it has no sentence."),
    ],
)
def test_what_is_wrong_with_a_pair_is_told_with_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "test.tsv", text)
    with pytest.raises(InputError) as error:
        read_translations(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_texts_come_a_line_each_or_from_a_column(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.txt", "One.\n\nTwo.\n")
    assert [one.text for one in read_texts(lines, kind="lm").examples] == ["One.", "Two."]
    table = write(tmp_path / "a.tsv", "text\tlabel\nOne.\t1\n")
    assert [one.text for one in read_texts(table, kind="lm").examples] == ["One."]
    assert [one.text for one in read_texts(["One."], kind="lm").examples] == ["One."]
    with pytest.raises(InputError, match=r"There is no file .*b\.txt"):
        read_texts(tmp_path / "b.txt", kind="lm")
