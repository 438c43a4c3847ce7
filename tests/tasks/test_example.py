from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headcount.errors import InputError
from headcount.tasks.examples import Labelled, content, labelled, pair, read_each, scored, sentence
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
        read_each([], labelled, "classification", "(text, label)")
    assert str(error.value) == (
        "There are no examples; tasks of the kind classification take a list of (text, label)."
    )
    with pytest.raises(InputError, match="or the path of a file, not of the type int"):
        read_each(3, labelled, "classification", "(text, label)")  # type: ignore[arg-type]


def test_content_does_not_know_the_line() -> None:
    assert content(Labelled("a", 1, line=4)) == content(Labelled("a", 1))
    assert content(Sentence("a", line=4)) == ("a",)
    assert content(7) == 7
