"""Tests of classes in `rooms/labels/labelled.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef
from tiny_subjects import classifier, encoder, filler, translator
from tiny_tokenizers import ENGLISH, PAIRS

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.labels.labelled import F1, MATTHEWS, Classes, class_counts, classes_of
from headcount.tasks.task import ACCURACY

GOLD = [0, 1, 1, 0, 1, 0, 0, 1, 1, 1]
LABELLED = list(zip(ENGLISH, GOLD, strict=True))


@pytest.fixture(scope="module")
def subject() -> Subject:
    return classifier(seed=1)


def said_alone(subject: Subject, *texts: str) -> torch.Tensor:
    inputs = subject.tokenizer(*texts, return_tensors="pt")  # type: ignore[misc]
    with torch.no_grad():
        return subject.model(**inputs).logits[0]


def test_outputs_are_the_models_own_classes(subject: Subject) -> None:
    outcome = tasks.classification(LABELLED).evaluate(subject, batch_size=4)
    said = [said_alone(subject, text).argmax().item() for text in ENGLISH]
    assert outcome.outputs == said
    assert outcome.scores.tolist() == [float(a == b) for a, b in zip(said, GOLD, strict=True)]
    assert outcome.value == np.mean(outcome.scores)
    assert 0 < outcome.value < 1


def test_two_texts_go_in_as_a_pair(subject: Subject) -> None:
    task = tasks.classification([(a, b, 1) for a, b in PAIRS])
    expected = [said_alone(subject, a, b).argmax().item() for a, b in PAIRS]
    assert task.evaluate(subject, batch_size=3).outputs == expected


def test_f1_and_matthews_are_sklearns(subject: Subject) -> None:
    outcome = tasks.classification(LABELLED, "f1").evaluate(subject)
    assert outcome.value == pytest.approx(f1_score(GOLD, outcome.outputs))
    negative = tasks.classification(LABELLED, "f1", positive=0).evaluate(subject)
    assert negative.value == pytest.approx(f1_score(GOLD, outcome.outputs, pos_label=0))
    matthews = tasks.classification(LABELLED, "matthews").evaluate(subject)
    assert matthews.value == pytest.approx(matthews_corrcoef(GOLD, outcome.outputs))


def test_the_loss_is_cross_entropy(subject: Subject) -> None:
    outcome = tasks.classification(LABELLED, "loss").evaluate(subject)
    told = [
        -said_alone(subject, text).log_softmax(-1)[gold].item()
        for text, gold in zip(ENGLISH, GOLD, strict=True)
    ]
    assert outcome.scores == pytest.approx(told, rel=1e-4)
    assert outcome.value == pytest.approx(np.mean(told), rel=1e-4)


def test_names_of_labels_reach_the_classes() -> None:
    names = {0: "bad", 1: "good"}
    subject = classifier(seed=1, id2label=names, label2id={"bad": 0, "good": 1})
    named = tasks.classification([(text, names[gold]) for text, gold in LABELLED])
    assert named.evaluate(subject).value == tasks.classification(LABELLED).evaluate(subject).value
    turned = tasks.classification(
        [(text, ["no", "yes"][gold]) for text, gold in LABELLED], labels=["no", "yes"]
    )
    assert turned.evaluate(subject).value == named.evaluate(subject).value


def test_a_label_outside_the_classes_is_told(subject: Subject) -> None:
    with pytest.raises(InputError) as error:
        tasks.classification([*LABELLED, ("Rain.", 7)]).evaluate(subject)
    assert str(error.value).startswith(
        "Example 11 has the label '7', which is not a class of tiny bert: its classes are "
        "LABEL_0 (0), LABEL_1 (1);"
    )


def test_a_file_with_columns_is_read(tmp_path: Path, subject: Subject) -> None:
    path = tmp_path / "dev.tsv"
    rows = "".join(f"{text}\t{gold}\n" for text, gold in LABELLED)
    path.write_text(f"sentence\tlabel\n{rows}", encoding="utf-8")
    found = tasks.classification(path, text="sentence", label="label").evaluate(subject)
    assert found.value == tasks.classification(LABELLED).evaluate(subject).value


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (encoder, "BertModel"),
        (filler, "BertForMaskedLM"),
        (translator, "MarianMTModel"),
    ],
)
def test_a_model_without_a_classifier_is_refused(make: object, name: str) -> None:
    with pytest.raises(ModelError) as error:
        tasks.classification(LABELLED).evaluate(make())  # type: ignore[operator]
    assert str(error.value).startswith("classification needs a model with a classifier head (load")
    assert str(error.value).endswith(f"is of the class {name}.")


def test_a_regression_head_is_refused() -> None:
    with pytest.raises(ModelError) as error:
        tasks.classification(LABELLED).evaluate(classifier(1))
    assert str(error.value) == "tiny bert gives one number and no classes; use a regression task."


def test_a_head_of_several_labels_at_once_is_refused() -> None:
    subject = classifier(3, problem_type="multi_label_classification")
    with pytest.raises(ModelError, match="gives several labels at once"):
        tasks.classification(LABELLED).evaluate(subject)


@pytest.mark.parametrize(
    ("examples", "options", "message"),
    [
        (
            [],
            {},
            "There are no examples; tasks of the kind classification take a list of (text, label) "
            "or (text, text2, label).",
        ),
        (
            LABELLED,
            {"metric": "bleu"},
            "Tasks of the kind classification have no metric 'bleu'; choose accuracy, f1, matthews "
            "or loss.",
        ),
        (LABELLED, {"positive": 2}, "The positive class is 2; F1 of two classes is about 0 or 1."),
    ],
)
def test_what_is_wrong_is_told(examples: object, options: dict[str, object], message: str) -> None:
    with pytest.raises((InputError, UsageError)) as error:
        tasks.classification(examples, **options)  # type: ignore[arg-type]
    assert str(error.value) == message


# ---  -------------------------------------------------------------------------------------------


PREDICTIONS = st.integers(2, 4).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(
            st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)),
            min_size=1,
            max_size=20,
        ),
    )
)


@settings(max_examples=100, deadline=None)
@given(PREDICTIONS)
@pytest.mark.filterwarnings("ignore")
def test_counts_by_class_give_sklearns_f1_and_matthews(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    classes, both = drawn
    said, gold = (np.array(side) for side in zip(*both, strict=True))
    rows = class_counts(said, gold, classes)
    assert MATTHEWS.value(rows) == pytest.approx(matthews_corrcoef(gold, said), abs=1e-12)
    assert F1.scores(rows).tolist() == (said == gold).astype(float).tolist()
    if classes > 2:
        judged = f1_score(gold, said, average="macro")
        assert F1.value(rows) == pytest.approx(judged, abs=1e-12)
    elif 1 in said or 1 in gold:
        assert F1.value(rows) == pytest.approx(f1_score(gold, said), abs=1e-12)


def test_f1_of_a_class_that_never_occurs_is_undefined() -> None:
    rows = class_counts(np.array([0, 0]), np.array([0, 0]), 2)
    assert np.isnan(F1.value(rows))
    assert F1.reason(rows) == "the positive class is neither a label nor predicted"


def test_a_classifier_that_says_one_class_has_a_matthews_of_0() -> None:
    assert MATTHEWS.value(class_counts(np.array([1, 1]), np.array([0, 1]), 2)) == 0


def test_accuracy_is_the_share_of_hits() -> None:
    assert ACCURACY.value(np.array([[1.0, 1], [0, 1], [1, 1], [1, 1]])) == 0.75


# ---  -------------------------------------------------------------------------------------------


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
