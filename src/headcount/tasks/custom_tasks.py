"""Tasks of the caller's own: a function that scores examples, or batches as a model takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from headcount.errors import InputError, UsageError
from headcount.models import Subject
from headcount.stats import ratio
from headcount.tasks.comparison import Metric
from headcount.tasks.task import Marks, Task
from headcount.text import Batch

#: Takes the model and some examples; gives one number an example.
Score = Callable[[Subject, list[Any]], Sequence[float]]
Losses = Callable[[Subject, list[Any]], Tensor]


@dataclass(frozen=True, repr=False)
class Custom(Task):
    """Examples of any kind, scored by a function; the metric is the mean score."""

    kind: ClassVar[str] = "custom"

    score: Score
    losses: Losses | None = None

    def encode(self, subject: Subject, batch_size: int) -> Iterator[Batch]:
        """Numbers of examples only: the function knows what to do with them."""
        if batch_size < 1:
            raise UsageError(f"The batch size is {batch_size}; it must be 1 or more.")
        for start in range(0, len(self), batch_size):
            yield Batch({}, {}, list(range(len(self)))[start : start + batch_size])

    def answer(self, subject: Subject, batch: Batch) -> list[float]:
        """The score of each example."""
        found = [float(number) for number in self.score(subject, self._some(batch))]
        if len(found) != len(batch):
            raise UsageError(
                f"The score function gave {len(found)} numbers for {len(batch)} examples; it must "
                "give one an example."
            )
        return found

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """What the caller's loss function gives: ``[example]``, differentiable."""
        if self.losses is None:
            raise UsageError(
                "This custom task has no loss, which gradients need; give custom(..., "
                "loss=function), one number an example."
            )
        found = self.losses(subject, self._some(batch))
        if found.shape != (len(batch),):
            raise UsageError(
                f"The loss function gave the shape {tuple(found.shape)} for {len(batch)} examples; "
                "it must give one number an example, not averaged."
            )
        return found

    def mark(self, answer: list[float], batch: Batch) -> Marks:
        """Scores, each counted once."""
        for number, score in zip(batch.index, answer, strict=True):
            if not math.isfinite(score):
                raise InputError(f"{self._place(number)} gets the score {score}; give a number.")
        return Marks(np.array([[score, 1.0] for score in answer]), answer)

    def _some(self, batch: Batch) -> list[Any]:
        return [self.examples[number] for number in batch.index]


def custom(
    examples: Sequence[Any],
    score: Score,
    *,
    loss: Losses | None = None,
    metric: str = "score",
    higher_is_better: bool = True,
) -> Custom:
    """A task of your own: `score(subject, examples)` gives one number for each example.

    It is called once a batch, in eval mode and without gradients; the metric, called `metric`, is
    the mean. `loss(subject, examples)`, a differentiable tensor ``[example]``, is needed only for
    gradient scores.

    >>> lengths = custom(["a", "abc"], lambda subject, texts: [len(text) for text in texts])
    >>> lengths
    Custom('examples in hand', 2 examples, score)
    """
    for name, function in (("score", score), ("loss", loss)):
        if function is not None and not callable(function):
            raise UsageError(
                f"{name} is a {type(function).__name__}; give a function of a subject and a list "
                "of examples."
            )
    found = tuple(examples)
    if not found:
        raise InputError("There are no examples; a custom task takes a list of one or more.")
    made = Metric(
        metric, ("score", "examples"), ratio, higher_is_better=higher_is_better, test="sign-flip"
    )
    return Custom(found, made, "examples in hand", score, loss)
