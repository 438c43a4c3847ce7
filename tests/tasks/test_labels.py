from __future__ import annotations

import pytest
from tiny_subjects import classifier

from headcount.errors import InputError
from headcount.tasks.classification import Classes, classes_of

NAMED = Classes("mine", ("Negative", "Positive"))
PLAIN = Classes("mine", ("LABEL_0", "LABEL_1", "LABEL_2"), ("entailment", "not_entailment"))


@pytest.mark.parametrize(
    ("classes", "label", "number"),
    [
        (NAMED, "Positive", 1),
        (NAMED, "negative", 0),
        (NAMED, 1, 1),
        (NAMED, "0", 0),
        (NAMED, "1.0", 1),
        (NAMED, 1.0, 1),
        (PLAIN, "not_entailment", 1),
        (PLAIN, "label_2", 2),
        # The model's own names win over ids and over the task's names.
        (Classes("mine", ("1", "0")), "1", 0),
        (Classes("mine", ("no", "yes"), ("yes", "no")), "yes", 1),
    ],
)
def test_labels_mean_classes(classes: Classes, label: str | int | float, number: int) -> None:
    assert classes.number(label, "Example 1") == number


@pytest.mark.parametrize("label", ["2", 2, -1, 0.5, "neutral", "nan"])
def test_a_label_that_is_no_class_is_told_with_the_classes(label: str | int | float) -> None:
    with pytest.raises(InputError) as error:
        NAMED.number(label, "Example 4 (line 5)")
    assert str(error.value) == (
        f"Example 4 (line 5) has the label '{label}', which is not a class of mine: its classes "
        "are Negative (0), Positive (1); use these names or ids, or say labels= in the order of "
        "the ids."
    )


def test_many_classes_are_not_all_listed() -> None:
    many = Classes("mine", tuple(f"c{number}" for number in range(40)))
    with pytest.raises(InputError, match=r"c11 \(11\), \.\.\.; use"):
        many.number("x", "Example 1")


def test_classes_are_read_off_the_model() -> None:
    subject = classifier(id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    assert classes_of(subject, ()).names == ("bad", "good")
    assert classes_of(classifier(3), ["a"]) == Classes(
        "tiny bert", ("LABEL_0", "LABEL_1", "LABEL_2"), ("a",)
    )
