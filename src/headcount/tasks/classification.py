"""Classification: one text, or two, and the class that a classifier head gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.errors import ModelError, UsageError
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.tasks.confusion import ACCURACY, F1, MATTHEWS, class_counts
from headcount.tasks.example import labelled
from headcount.tasks.head_task import HeadTask
from headcount.tasks.labels import classes_of
from headcount.tasks.metric import choose_metric
from headcount.tasks.reading import Column, Columns, read_labelled
from headcount.tasks.sheet import Marks
from headcount.tasks.token_loss import MEAN_LOSS, labels_of
from headcount.text.batch import Batch

__all__ = ["Classification", "classification"]

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
        said = answer.argmax(dim=1).cpu().numpy()
        rows = self._rows(answer, batch, said)
        rows[answer.isnan().any(dim=1).cpu().numpy()] = np.nan
        return Marks(rows, said.tolist())

    def _rows(self, answer: Tensor, batch: Batch, said: Any) -> Floats:
        one = np.ones(len(said))
        if self.metric.name == "loss":
            return np.stack([_losses(answer, batch).cpu().double().numpy(), one], axis=1)
        gold = labels_of(batch, answer).cpu().numpy()
        if self.metric.name == "accuracy":
            return np.stack([(said == gold).astype(np.float64), one], axis=1)
        classes = answer.shape[1]
        if classes == 2 and self.positive == 0:
            said, gold = 1 - said, 1 - gold
        return class_counts(said, gold, classes)

    def _numbers(self, examples: Sequence[int], subject: Subject) -> list[int]:
        classes = classes_of(subject, self.labels)
        return [classes.number(self.examples[n].label, self._place(n)) for n in examples]


def _losses(logits: Tensor, batch: Batch) -> Tensor:
    return cross_entropy(logits, labels_of(batch, logits), reduction="none")


def classification(
    examples: Any,
    metric: str = "accuracy",
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
    classes), "matthews" or "loss". A label is one of the model's own names, or an id; `labels`
    gives names for the ids where the model has none.

    >>> classification([("A fine film.", 1), ("A dull film.", 0)])
    Classification('examples in hand', 2 examples, accuracy)
    """
    chosen = choose_metric("classification", metric, METRICS)
    if positive not in (0, 1):
        raise UsageError(f"The positive class is {positive!r}; F1 of two classes is about 0 or 1.")
    found = read_labelled(
        examples,
        labelled,
        kind="classification",
        shape="(text, label) or (text, text2, label)",
        columns=Columns(text, text2, label, header),
    )
    return Classification(found.examples, chosen, found.name, tuple(labels), positive)
