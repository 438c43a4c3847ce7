"""Similarity: two texts, and the cosine of their embeddings beside a human score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from headcount.errors import InputError, UsageError
from headcount.subject import Subject
from headcount.tasks.correlation import PEARSON, SPEARMAN
from headcount.tasks.example import Labelled, scored
from headcount.tasks.forward import forward
from headcount.tasks.metric import choose_metric
from headcount.tasks.reading import Column, Columns, read_labelled
from headcount.tasks.regression import number_marks
from headcount.tasks.sheet import Marks
from headcount.tasks.task import Task
from headcount.tasks.token_loss import MEAN_LOSS, labels_of
from headcount.text.batch import Batch
from headcount.text.encode import Encoded
from headcount.text.sentence import Sentence

__all__ = ["Similarity", "embed", "similarity"]

METRICS = {"spearman": SPEARMAN, "pearson": PEARSON, "loss": MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class Similarity(Task):
    """Pairs of texts with a score each; any model that reads text can be asked.

    In a batch the two texts of an example stand one below the other, so that scales of an
    example, ``[batch, head]``, reach both.
    """

    kind: ClassVar[str] = "similarity"

    #: The scores that mean nothing alike and all alike, for the loss.
    span: tuple[float, float] = (0.0, 1.0)
    #: Written before every text, such as e5's "query: ".
    prefix: str = ""

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Both texts of each example, one below the other, longest examples first."""
        order = self._order()
        texts = [
            Sentence(self.prefix + text, line=self.examples[number].line)
            for number in order
            for text in (self.examples[number].text, self.examples[number].second)
        ]
        stacks = ("enc",) if subject.kind == "enc-dec" else None
        return self.encoded(texts, subject, 2 * batch_size, stacks=stacks, sort=False)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with one number an example instead of two rows, and gold scores as labels."""
        order = self._order()
        self._check_pairs(batch.index, order, subject)
        index = [order[row // 2] for row in batch.index[::2]]
        gold = torch.tensor([self.examples[number].label for number in index])
        return replace(batch, index=index, labels=gold)

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """The cosine of the two embeddings of each example, ``[example]``."""
        first, second = embed(subject, batch).unflatten(0, (-1, 2)).unbind(dim=1)
        return cosine_similarity(first, second)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The squared distance of each cosine from its score, which `span` brings to 0 to 1."""
        return self._losses(self.answer(subject, batch), batch)

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Losses, or cosines beside the gold scores."""
        losses = self._losses(answer, batch)
        return number_marks(self.metric, answer, labels_of(batch, answer), losses)

    def _losses(self, said: Tensor, batch: Batch) -> Tensor:
        low, high = self.span
        return (said - (labels_of(batch, said) - low) / (high - low)) ** 2

    def _order(self) -> list[int]:
        """Examples by the length of their longer text, longest first."""
        lengths = [-max(len(one.text), len(one.second or "")) for one in self.examples]
        return sorted(range(len(self)), key=lengths.__getitem__)

    def _check_pairs(self, rows: Sequence[int], order: Sequence[int], subject: Subject) -> None:
        """A text without any token is left out, and everything behind it would be shifted."""
        start = rows[0] - rows[0] % 2
        whole = range(start, start + len(rows) + len(rows) % 2)
        missing = [row for row in whole if row not in set(rows)]
        if missing:
            raise self.no_token(order[missing[0] // 2], subject)


def embed(subject: Subject, batch: Batch) -> Tensor:
    """The mean of the last hidden state over real tokens, ``[row, hidden]``, in float32."""
    batch = batch.to(subject.device)
    side = batch.sides["source" if "source" in batch.sides else "target"]
    real = side.real[:, :, None].float()
    return (_hidden(subject, batch).float() * real).sum(dim=1) / real.sum(dim=1)


def _hidden(subject: Subject, batch: Batch) -> Tensor:
    """What comes out of the stack that reads the text, ``[row, token, hidden]``."""
    if subject.kind == "enc-dec":
        return forward(subject, batch).encoder_last_hidden_state
    if subject.inner.base_model is subject.inner:
        return forward(subject, batch).last_hidden_state
    return forward(subject, batch, output_hidden_states=True).hidden_states[-1]


def similarity(
    examples: Any,
    metric: str = "spearman",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
    span: tuple[float, float] | None = None,
    prefix: str = "",
) -> Similarity:
    """A similarity task from (text, text2, score), or a file with columns.

    Texts are embedded by the mean of the last hidden state, pairs compared by cosine. `metric` is
    "spearman", "pearson" or "loss", the mean squared distance from the score brought to 0 to 1:
    `span` says which scores those are, by default the lowest and the highest there is.

    >>> similarity([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)]).span
    (0.5, 4.5)
    """
    chosen = choose_metric("similarity", metric, METRICS)
    found = read_labelled(
        examples,
        scored,
        kind="similarity",
        shape="(text, text2, score)",
        columns=Columns(text, text2, label, header),
    )
    if found.examples[0].second is None:
        raise InputError(
            f"{found.name} has one text an example; similarity takes (text, text2, score), in a "
            "file the columns text, text2 and label."
        )
    return Similarity(found.examples, chosen, found.name, _span(found.examples, span), prefix)


def _span(examples: Sequence[Labelled], asked: tuple[float, float] | None) -> tuple[float, float]:
    """The scores that count as 0 and 1."""
    scores = [float(example.label) for example in examples]
    low, high = asked if asked is not None else (min(scores), max(scores))
    if asked is not None and not low < high:
        raise UsageError(f"The span is {low:g} to {high:g}; give the lower score first.")
    # One score alone has no span of its own: it is taken as nothing alike.
    return (low, high) if low < high else (low, low + 1.0)
