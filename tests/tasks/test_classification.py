from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, matthews_corrcoef
from tiny_subjects import classifier, encoder, filler, translator
from tiny_tokenizers import ENGLISH, PAIRS

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject

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
