"""Tests of `tasks/examples.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tiny_subjects
from pyarrow import parquet

from headcount import tasks
from headcount.errors import InputError
from headcount.rooms.labels.labelled import Columns, labelled, read_labelled, scored
from headcount.tasks.examples import (
    FoundExamples,
    Labelled,
    content,
    pair,
    read_texts,
    read_translations,
    sentence,
)
from headcount.text.sentence import Pair, Sentence


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (("a", 1), Labelled("a", 1)),
        (["a", "b", "yes"], Labelled("a", "yes", "b")),
        ({"text": "a", "label": 0}, Labelled("a", 0)),
        ({"text": "a", "text2": "b", "label": "x"}, Labelled("a", "x", "b")),
        (Labelled("a", "x"), Labelled("a", "x")),
        (("a", np.int64(3)), Labelled("a", 3)),
        (("a", True), Labelled("a", 1)),
    ],
)
def test_a_labelled_example_comes_in_many_shapes(item: Any, expected: Labelled) -> None:
    found = labelled(item, "Example 1")
    assert found == expected
    assert type(found.label) is type(expected.label)


@pytest.mark.parametrize(
    ("read", "item", "message"),
    [
        (labelled, "a", "Example 3 is a str; give (text, label) or (text, text2, label)."),
        (labelled, ("a",), "Example 3 has 1 parts; give (text, label) or (text, text2, label)."),
        (labelled, (" ", 1), "Example 3 has no text; fill it in or drop the example."),
        (labelled, ("a", "", 1), "Example 3 has no second text; fill it in or drop the example."),
        (labelled, (4, 1), "Example 3 has a text of the type int; give a string."),
        (labelled, ("a", None), "Example 3 has no label; fill it in or drop the example."),
        (labelled, ("a", " "), "Example 3 has no label; fill it in or drop the example."),
        (
            labelled,
            ("a", [1]),
            "Example 3 has a label of the type list; give a name or a number.",
        ),
        (scored, ("a", "b", "high"), "Example 3 has the score 'high'; a score is a finite number."),
        (scored, ("a", "b", "nan"), "Example 3 has the score 'nan'; a score is a finite number."),
        (pair, ("a",), "Example 3 has 1 parts; give (source, target)."),
        (pair, ("a", ""), "Example 3 has no target; fill it in or drop the example."),
        (pair, (" ", "b"), "Example 3 has no source; fill it in or drop the example."),
        (pair, {"source": "a"}, "Example 3 has no target; fill it in or drop the example."),
        (sentence, "", "Example 3 has no text; fill it in or drop the example."),
        (sentence, 5, "Example 3 has a text of the type int; give a string."),
    ],
)
def test_what_is_wrong_with_an_example_is_told_by_its_number(
    read: Any, item: Any, message: str
) -> None:
    with pytest.raises(InputError) as error:
        read(item, "Example 3")
    assert str(error.value) == message


def test_pairs_and_sentences_come_in_many_shapes() -> None:
    assert pair(("a", "b"), "") == pair({"source": "a", "target": "b"}, "") == Pair("a", "b")
    assert sentence("a", "") == sentence({"text": "a"}, "") == Sentence("a")


def test_a_score_is_read_as_a_number() -> None:
    assert scored(("a", "b", "3.5"), "").label == 3.5


def test_no_examples_are_an_error() -> None:
    with pytest.raises(InputError) as error:
        read_labelled([], "classification", Columns())
    assert str(error.value) == (
        "There are no examples; tasks of the kind classification take a list of (text, label) or "
        "(text, text2, label)."
    )
    with pytest.raises(InputError, match="or the path of a file, not of the type int"):
        read_labelled(3, "classification", Columns())


def test_content_does_not_know_the_line() -> None:
    assert content(Labelled("a", 1, line=4)) == content(Labelled("a", 1))
    assert content(Sentence("a", line=4)) == ("a",)
    assert content(7) == 7


# ---  -------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(source: object, **columns: object) -> FoundExamples:
    return read_labelled(source, "classification", Columns(**columns))  # type: ignore[arg-type]


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
        ("a\tb\nc\t\n", ", line 2 has no target; fill it in or drop the example."),
        ("a\tb\n \tc\n", ", line 2 has no source; fill it in or drop the example."),
        ("", " is empty: it has no examples."),
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


# --- Input as people have it --------------------------------------------------------------------


ROWS = [{"review": "A fine film.", "stars": 1}, {"review": "A dull film.", "stars": 0}]


class Split(list):  # type: ignore[type-arg]
    """What a split of Hugging Face datasets looks like: rows as mappings, and column names."""

    column_names = ("review", "stars")


@pytest.mark.parametrize("given", [ROWS, pd.DataFrame(ROWS), Split(ROWS)])
def test_rows_with_names_are_read_by_the_names_that_are_given(given: Any) -> None:
    task = tasks.classification(given, text="review", label="stars")
    assert [(one.text, one.label) for one in task.examples] == [
        ("A fine film.", 1),
        ("A dull film.", 0),
    ]
    with pytest.raises(
        InputError, match="or sentence1 for the text; it has review, stars: name one with text="
    ):
        tasks.classification(given)
    with pytest.raises(InputError, match="Example 1 has no column 'text'; it has review, stars"):
        tasks.classification(given, text="text", label="stars")
    assert tasks.lm(given, text="review").examples[0].text == "A fine film."


def test_splits_are_told_apart() -> None:
    with pytest.raises(InputError, match=r"2 splits \(train, test\); give one of them, e"):
        tasks.classification({"train": Split(ROWS), "test": Split(ROWS)}, text="review")


def test_translations_as_data_sets_have_them() -> None:
    rows = [{"id": "0", "translation": {"de": "Regen.", "en": "Rain."}}]
    assert tasks.translation(rows, source="en", target="de").examples[0].source == "Rain."
    assert tasks.translation(rows).examples[0].source == "Regen."
    named = tasks.translation(
        [{"english": "Rain.", "german": "Regen."}], source="english", target="german"
    )
    assert named.examples[0].target == "Regen."
    with pytest.raises(InputError, match="no column source for the source; it has a, b"):
        tasks.translation([{"a": "Rain.", "b": "Regen."}])


# --- Files and folders of Hugging Face's datasets -------------------------------------------------


def write_arrow(path: Path, rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def test_a_saved_dataset_is_a_file_of_examples(tmp_path: Path) -> None:
    """As `Dataset.save_to_disk` writes it: Arrow streams, and a file that tells of them."""
    rows = [{"sentence": f"Rain {number} fell.", "label": number % 2} for number in range(5)]
    (tmp_path / "dataset_info.json").write_text("{}")
    write_arrow(tmp_path / "data-00000-of-00002.arrow", rows[:3])
    write_arrow(tmp_path / "data-00001-of-00002.arrow", rows[3:])
    folder = tasks.classification(tmp_path)
    listed = tasks.classification(rows)
    told = [[(one.text, one.label) for one in task.examples] for task in (folder, listed)]
    assert told[0] == told[1]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "dev.parquet")
    assert len(tasks.classification(tmp_path / "dev.parquet")) == 5


def test_a_saved_dataset_of_translations(tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("{}")
    rows = [{"translation": {"en": "Rain.", "de": "Regen."}}]
    write_arrow(tmp_path / "data-00000-of-00001.arrow", rows)
    (found,) = tasks.translation(tmp_path).examples
    assert (found.source, found.target) == ("Rain.", "Regen.")


def test_datasets_and_metrics_of_hugging_face(tmp_path: Path) -> None:
    """The real packages, where they are installed: objects, streams, a saved folder, a metric."""
    datasets = pytest.importorskip("datasets")
    evaluate = pytest.importorskip("evaluate")
    rows = {"sentence": [f"Rain {number} fell." for number in range(6)], "label": [0, 1] * 3}
    whole = datasets.Dataset.from_dict(rows)
    whole.save_to_disk(str(tmp_path / "saved"))
    for source in (whole, whole.to_iterable_dataset(), tmp_path / "saved"):
        assert len(tasks.classification(source)) == 6
    with pytest.raises(InputError, match=r"2 splits \(train, test\)"):
        tasks.classification(datasets.DatasetDict({"train": whole, "test": whole}))

    class Share(evaluate.Metric):
        def _info(self) -> object:
            whole = datasets.Value("int64")
            kinds = datasets.Features({"predictions": whole, "references": whole})
            words = {"description": "", "citation": "", "inputs_description": ""}
            return evaluate.MetricInfo(**words, features=kinds)

        def _compute(self, predictions: list[int], references: list[int]) -> dict[str, float]:
            pairs = list(zip(predictions, references, strict=True))
            return {"share": sum(one == other for one, other in pairs) / len(pairs)}

    subject = tiny_subjects.classifier()
    accuracy = tasks.classification(whole).evaluate(subject).value
    for metric in (Share(), evaluate.combine([Share()])):
        assert tasks.classification(whole, metric=metric).evaluate(subject).value == accuracy


@pytest.mark.parametrize("read", [tasks.translation, tasks.classification])
def test_a_name_that_no_file_can_have_is_told(read: Any) -> None:
    with pytest.raises(InputError, match=r"a{100}"):
        read("a" * 5000)
