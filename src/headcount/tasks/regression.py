"""Regression: one text, or two, and the number that a head with one output gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headcount.subject import Subject
from headcount.tasks.correlation import PEARSON, SPEARMAN, pair_sums
from headcount.tasks.example import scored
from headcount.tasks.forward import refuse
from headcount.tasks.head_task import HeadTask
from headcount.tasks.metric import Metric, choose_metric
from headcount.tasks.reading import Column, Columns, read_labelled
from headcount.tasks.sheet import Marks
from headcount.tasks.token_loss import MEAN_LOSS, labels_of
from headcount.text.batch import Batch

__all__ = ["Regression", "number_marks", "regression"]

METRICS = {"spearman": SPEARMAN, "pearson": PEARSON, "loss": MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class Regression(HeadTask):
    """Texts, or pairs of texts, with a number each."""

    kind: ClassVar[str] = "regression"
    needs: ClassVar[str] = "regression needs a model with a head of one output (num_labels=1)"

    def check(self, subject: Subject) -> None:
        """Raise unless the model gives one number a text."""
        super().check(subject)
        if subject.inner.config.num_labels != 1:
            raise refuse(subject, self.needs)

    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """The number that is right for each example."""
        return torch.tensor([self.examples[number].label for number in batch.index])

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """The number that the model gives each example."""
        return self.logits(subject, batch)[:, 0]

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The squared error of each example: ``[example]``."""
        said = self.answer(subject, batch)
        return (said - labels_of(batch, said)) ** 2

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Squared errors, or predictions beside the gold ones."""
        gold = labels_of(batch, answer)
        return number_marks(self.metric, answer, gold, (answer - gold) ** 2)


def number_marks(metric: Metric, said: Tensor, gold: Tensor, losses: Tensor) -> Marks:
    """What the metric counts in predicted numbers."""
    x, y = said.cpu().double().numpy(), gold.cpu().double().numpy()
    if metric.name == "loss":
        rows = np.stack([losses.cpu().double().numpy(), np.ones(len(x))], axis=1)
    elif metric.name == "pearson":
        rows = pair_sums(x, y)
    else:
        rows = np.stack([x, y], axis=1)
    return Marks(rows, x.tolist())


def regression(
    examples: Any,
    metric: str = "spearman",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
) -> Regression:
    """A regression task from (text, number) or (text, text2, number), or a file with columns.

    `metric` is "spearman", "pearson" or "loss", the mean squared error.

    >>> regression([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)])
    Regression('examples in hand', 2 examples, spearman)
    """
    chosen = choose_metric("regression", metric, METRICS)
    found = read_labelled(
        examples,
        scored,
        kind="regression",
        shape="(text, number) or (text, text2, number)",
        columns=Columns(text, text2, label, header),
    )
    return Regression(found.examples, chosen, found.name)
