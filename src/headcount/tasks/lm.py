"""Language modelling: the loss of a decoder-only model on the next token of plain texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from torch import Tensor

from headcount.errors import ModelError, UsageError
from headcount.subject import Subject
from headcount.tasks.forward import logits_of
from headcount.tasks.metric import choose_metric
from headcount.tasks.reading import Column, read_texts
from headcount.tasks.sheet import Marks
from headcount.tasks.task import Task
from headcount.tasks.token_loss import IGNORED, LOSS, PERPLEXITY, labels_of, loss_marks, row_losses
from headcount.text.batch import Batch
from headcount.text.encode import Encoded, Long

__all__ = ["LanguageModelling", "check_long", "lm"]

METRICS = {"loss": LOSS, "perplexity": PERPLEXITY}
_NEEDS = "lm needs a decoder-only model with a language-modelling head"


@dataclass(frozen=True, repr=False)
class LanguageModelling(Task):
    """Plain texts; every token but the first of a row is predicted from those before it.

    A text longer than the model takes becomes several rows (windows) of one example; their
    losses add up in the outcome.
    """

    kind: ClassVar[str] = "lm"

    long: Long = "window"

    def check(self, subject: Subject) -> None:
        """Raise unless the model reads from left to right only."""
        if subject.kind != "dec":
            other = "mlm" if subject.kind == "enc" else "translation"
            raise ModelError(
                f"{_NEEDS}, and {subject.name} is of the class {type(subject.inner).__name__}, "
                f"with {subject.kind} heads; use the task {other}."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, longest first."""
        return self.encoded(self.examples, subject, batch_size, long=self.long)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with what comes next at each place as its labels, ``[row, token]``."""
        side = batch.sides["target"]
        following = side.ids.masked_fill(~side.real, IGNORED).roll(-1, dims=1)
        following[:, -1] = IGNORED
        return replace(batch, labels=following.masked_fill(~side.real, IGNORED))

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits, ``[row, token, word]``."""
        return logits_of(subject, batch, axes=3, needs=_NEEDS)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Nats of each row, summed over its tokens but the first: ``[row]``."""
        logits = self.answer(subject, batch)
        return row_losses(logits, labels_of(batch, logits))

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Loss and tokens of each row."""
        return loss_marks(answer, labels_of(batch, answer))


def check_long(long: str) -> None:
    """Refuse a word that says nothing of what to do with long texts."""
    if long not in get_args(Long):
        raise UsageError(f"long is '{long}'; choose {', '.join(get_args(Long)[:-1])} or error.")


def lm(
    examples: Any,
    metric: str = "loss",
    *,
    long: Long = "window",
    text: Column = None,
    header: bool = True,
) -> LanguageModelling:
    """A language-modelling task from texts, a .txt file of one a line, or a column of a file.

    `metric` is "loss", nats a token, or "perplexity".

    >>> lm(["Rain fell.", "It stopped."])
    LanguageModelling('examples in hand', 2 examples, loss)
    """
    chosen = choose_metric("lm", metric, METRICS)
    check_long(long)
    found = read_texts(examples, kind="lm", text=text, header=header)
    return LanguageModelling(found.examples, chosen, found.name, long)
