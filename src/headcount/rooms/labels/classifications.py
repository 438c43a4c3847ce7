"""Classification: one text, or two, and the class that a classifier head gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.errors import InputError, ModelError, UsageError
from headcount.models import Subject
from headcount.rooms.labels.labelled import Columns, HeadTask, read_labelled
from headcount.stats import Floats
from headcount.tasks import (
    ACCURACY,
    MEAN_LOSS,
    Column,
    Label,
    Marks,
    Metric,
    labels_of,
    read_metric,
)
from headcount.text import Batch

# --- Metrics of a classifier --------------------------------------------------------------------


def class_counts(
    predicted: npt.NDArray[np.int_], gold: npt.NDArray[np.int_], classes: int
) -> Floats:
    """Hits, predictions and gold labels by class, one row an example: ``[example, 3 * class]``.

    >>> class_counts(np.array([1, 0]), np.array([1, 1]), 2)
    array([[0., 1., 0., 1., 0., 1.],
           [0., 0., 1., 0., 0., 1.]])
    """
    predictions, labels = np.eye(classes)[predicted], np.eye(classes)[gold]
    return np.concatenate([predictions * labels, predictions, labels], axis=1)


def f1(sums: Floats) -> Floats:
    """F1 of the second of two classes, or the mean F1 of three or more that occur.

    >>> f1(np.array([0.0, 1, 1, 1, 0, 2])).round(3)
    np.float64(0.667)
    """
    hits, predicted, gold = np.split(sums, 3, axis=-1)
    with np.errstate(invalid="ignore"):
        each = 2 * hits / (predicted + gold)
    if hits.shape[-1] == 2:
        return each[..., 1][()]
    there = predicted + gold > 0
    with np.errstate(invalid="ignore"):
        return (np.where(there, each, 0.0).sum(axis=-1) / there.sum(axis=-1))[()]


def matthews(sums: Floats) -> Floats:
    """Matthews' correlation for any number of classes; 0 where one side has only one.

    Matthews 1975; Gorodkin 2004, equation 8, for more than two classes.

    >>> matthews(class_counts(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 1]), 2).sum(0)).round(3)
    np.float64(0.577)
    """
    hits, predicted, gold = np.split(sums, 3, axis=-1)
    total = gold.sum(axis=-1)
    together = total * hits.sum(axis=-1) - (predicted * gold).sum(axis=-1)
    apart = (total**2 - (predicted**2).sum(axis=-1)) * (total**2 - (gold**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(apart > 0, together / np.sqrt(apart), np.where(total > 0, 0.0, np.nan))[()]


def _right(statistics: Floats) -> Floats:
    """Whether each example is right: 1 or 0."""
    return np.split(statistics, 3, axis=-1)[0].sum(axis=-1)


_COLUMNS = ("hits by class", "predictions by class", "gold labels by class")
F1 = Metric(
    "f1",
    _COLUMNS,
    f1,
    each=_right,
    reason=lambda statistics: "the positive class is neither a label nor predicted",
)
MATTHEWS = Metric("matthews", _COLUMNS, matthews, each=_right)


# --- Labels of a data set as classes of a model -------------------------------------------------


@dataclass(frozen=True)
class Classes:
    """The classes of a model, and the names a task has for them.

    >>> classes = Classes("mine", ("LABEL_0", "LABEL_1"), ("bad", "good"))
    >>> classes.number("good", "Example 1"), classes.number("0", "Example 2")
    (1, 0)
    """

    model: str
    #: The model's own names, by id.
    names: tuple[str, ...]
    #: The task's names, in the order of the ids it takes them for.
    told: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def number(self, label: Label, where: str) -> int:
        """The class that a label means; the model's own names come first, then ids."""
        name = str(label).strip()
        for known in (self.names, tuple(map(str.lower, self.names))):
            if name in known or name.lower() in known:
                return known.index(name if name in known else name.lower())
        for found in (_id(label), self.told.index(name) if name in self.told else None):
            if found is not None and found < len(self.names):
                return found
        shown = [f"{name} ({number})" for number, name in enumerate(self.names)]
        listed = ", ".join(shown if len(shown) <= 12 else [*shown[:12], "..."])
        raise InputError(
            f"{where} has the label '{label}', which is not a class of {self.model}: its classes "
            f"are {listed}; use these names or ids, or say labels= in the order of the ids."
        )


def classes_of(subject: Subject, told: Sequence[str]) -> Classes:
    """The classes of a model with a classifier head."""
    config = subject.inner.config
    names = tuple(str(config.id2label.get(n, f"LABEL_{n}")) for n in range(config.num_labels))
    return Classes(subject.name, names, tuple(told))


def _id(label: Label) -> int | None:
    """A label that is a whole number of 0 or more, however it is written."""
    try:
        number = float(label)
    except ValueError:
        return None
    return int(number) if number.is_integer() and number >= 0 else None


# --- Classification -----------------------------------------------------------------------------

METRICS = {"accuracy": ACCURACY, "f1": F1, "matthews": MATTHEWS, "loss": MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class Classification(HeadTask):
    """Texts, or pairs of texts, with a class each."""

    kind: ClassVar[str] = "classification"
    needs: ClassVar[str] = (
        "classification needs a model with a classifier head (load it with "
        "auto_class='AutoModelForSequenceClassification')"
    )

    #: Names of the classes in the order of their ids, where the model has other names.
    labels: tuple[str, ...] = ()
    #: The class that F1 is about, where there are two.
    positive: int = 1

    def check(self, subject: Subject) -> None:
        """Raise unless the model has classes, and every label is one of them."""
        super().check(subject)
        config = subject.inner.config
        if config.num_labels == 1:
            raise ModelError(
                f"{subject.name} gives one number and no classes; use a regression task."
            )
        if config.problem_type == "multi_label_classification":
            raise ModelError(
                f"{subject.name} gives several labels at once, and a classification task has one "
                "an example; score it with a custom task."
            )
        self._numbers(range(len(self)), subject)

    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """The id of each example's class."""
        return torch.tensor(self._numbers(batch.index, subject))

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits, ``[example, class]``."""
        return self.logits(subject, batch)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Cross-entropy of each example, in nats: ``[example]``."""
        return _losses(self.logits(subject, batch), batch)

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Losses, hits, or counts by class; the outputs are ids of classes."""
        predicted = answer.argmax(dim=1).cpu().numpy()
        gold, one = labels_of(batch, answer).cpu().numpy(), np.ones(len(predicted))
        if self.metric.statistic is None:  # the caller's own, whatever it is called
            rows = np.stack([predicted, gold], axis=1).astype(np.float64)
        elif self.metric.name == "loss":
            rows = np.stack([_losses(answer, batch).cpu().double().numpy(), one], axis=1)
        elif self.metric.name == "accuracy":
            rows = np.stack([(predicted == gold).astype(np.float64), one], axis=1)
        elif answer.shape[1] == 2 and self.positive == 0:
            rows = class_counts(1 - predicted, 1 - gold, 2)
        else:
            rows = class_counts(predicted, gold, answer.shape[1])
        rows[answer.isnan().any(dim=1).cpu().numpy()] = np.nan
        return Marks(rows, predicted.tolist())

    def chance(self, subject: Subject) -> float | None:
        """What one class for all examples reaches; for the loss, how often each occurs."""
        if self.metric is not F1:
            return super().chance(subject)
        shares = np.bincount(self._numbers(range(len(self)), subject), minlength=2) / len(self)
        two = subject.inner.config.num_labels == 2
        most = shares[self.positive] if two else shares.max()
        return float(2 * most / (1 + most) / (1 if two else np.count_nonzero(shares)))

    def _numbers(self, examples: Sequence[int], subject: Subject) -> list[int]:
        classes = classes_of(subject, self.labels)
        return [classes.number(self.examples[n].label, self._place(n)) for n in examples]


def _losses(logits: Tensor, batch: Batch) -> Tensor:
    return cross_entropy(logits, labels_of(batch, logits), reduction="none")


def classification(
    examples: Any,
    metric: Any = "accuracy",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
    labels: Sequence[str] = (),
    positive: int = 1,
) -> Classification:
    """A classification task from (text, label) or (text, text2, label), or a file with columns.

    `metric` is "accuracy", "f1" (of the class `positive` where there are two, else the mean over
    classes), "matthews" or "loss"; or a function of predicted and true ids, or a metric of Hugging
    Face's evaluate. A label is one of the model's own names, or an id; `labels`
    gives names for the ids where the model has none.

    >>> classification([("A fine film.", 1), ("A dull film.", 0)])
    Classification('examples in hand', 2 examples, accuracy)
    """
    chosen = read_metric("classification", metric, METRICS)
    if positive not in (0, 1):
        raise UsageError(f"The positive class is {positive!r}; F1 of two classes is about 0 or 1.")
    found = read_labelled(examples, "classification", Columns(text, text2, label, header))
    return Classification(found.examples, chosen, found.name, tuple(labels), positive)
