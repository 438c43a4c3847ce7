"""Numbers for texts: regression (the output of a head) and similarity (the cosine of two texts).

Similarity is of mean-pooled embeddings, as Sentence-BERT has it (Reimers & Gurevych 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.models import Subject, capture_hooks_off
from headcount.rooms.labels.labelled import Columns, HeadTask, read_labelled
from headcount.stats import Floats, correlate_weighted
from headcount.tasks import Column, Marks, Metric, Task
from headcount.text import Batch, Encoded, Item, Sentence

# --- Metrics of predicted numbers ---------------------------------------------------------------


def pair_sums(predicted: Floats, gold: Floats) -> Floats:
    """What Pearson's correlation adds up, ``[example, 6]``: 1, x, y, xx, yy, xy.

    >>> pair_sums(np.array([2.0]), np.array([3.0]))
    array([[1., 2., 3., 4., 9., 6.]])
    """
    one = np.ones_like(predicted)
    return np.stack([one, predicted, gold, predicted**2, gold**2, predicted * gold], axis=1)


def pearson(sums: Floats) -> Floats:
    """Pearson's r of summed pairs ``[..., 6]``; NaN where one side does not vary.

    >>> x, y = np.array([1.0, 2, 3]), np.array([1.0, 3, 2])
    >>> pearson(pair_sums(x, y).sum(axis=0)).round(3)
    np.float64(0.5)
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread_x, spread_y = _spread(n, x, xx), _spread(n, y, yy)
        r = (xy - x * y / n) / np.sqrt(spread_x * spread_y)
    return np.clip(r, -1, 1)[()]


def _spread(n: Floats, total: Floats, squares: Floats) -> Floats:
    """The sum of squares around the mean; NaN where it is nothing but rounding."""
    spread = squares - total**2 / n
    return np.where(spread > 1e-12 * squares, spread, np.nan)


def _shares(x: Floats, y: Floats) -> Floats:
    """What each pair adds to the correlation: products of standard scores, whose mean is r."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x - x.mean()) * (y - y.mean()) / (x.std() * y.std())


def _spearman(rows: Floats, weights: Floats) -> Floats:
    x, y = rows.T
    if _is_constant(x) or _is_constant(y):
        return np.full(len(weights), np.nan)
    return correlate_weighted(x, y, weights, "spearman")


def _is_constant(values: Floats) -> bool:
    """Whether values differ by rounding alone, which has an order but no meaning."""
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max())


def _why(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return "a correlation needs two examples or more"
    name, values = ("predictions", x) if _is_constant(x) else ("gold scores", y)
    return f"all {len(values)} {name} are {values[0]:.6g}, and a constant has no order"


PEARSON = Metric(
    "pearson",
    ("examples", "prediction", "gold", "prediction²", "gold²", "prediction · gold"),
    pearson,
    each=lambda rows: _shares(rows[:, 1], rows[:, 2]),
    reason=lambda rows: _why(rows[:, 1], rows[:, 2]),
)


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata  # a second to import, for this alone

    return np.asarray(rankdata(values), dtype=np.float64)


SPEARMAN = Metric(
    "spearman",
    ("prediction", "gold"),
    None,
    each=lambda rows: _shares(_ranks(rows[:, 0]), _ranks(rows[:, 1])),
    drawn=_spearman,
    reason=lambda rows: _why(rows[:, 0], rows[:, 1]),
)


# --- Regression ---------------------------------------------------------------------------------

METRICS = {"spearman": SPEARMAN, "pearson": PEARSON, "loss": tasks.MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class Regression(HeadTask):
    """Texts, or pairs of texts, with a number each."""

    kind: ClassVar[str] = "regression"
    needs: ClassVar[str] = "regression needs a model with a head of one output (num_labels=1)"

    def check(self, subject: Subject) -> None:
        """Raise unless the model gives one number a text."""
        super().check(subject)
        if subject.inner.config.num_labels != 1:
            raise tasks.refuse(subject, self.needs)

    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """The number that is right for each example."""
        return torch.tensor([self.examples[number].label for number in batch.index])

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """The number that the model gives each example."""
        return self.logits(subject, batch)[:, 0]

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The squared error of each example: ``[example]``."""
        said = self.answer(subject, batch)
        return (said - tasks.labels_of(batch, said)) ** 2

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Squared errors, or predictions beside the gold ones."""
        gold = tasks.labels_of(batch, answer)
        return number_marks(self.metric, answer, gold, (answer - gold) ** 2)


def number_marks(metric: Metric, said: Tensor, gold: Tensor, losses: Tensor) -> Marks:
    """What the metric counts in predicted numbers."""
    x, y = said.cpu().double().numpy(), gold.cpu().double().numpy()
    if metric.statistic is None:  # Spearman's, or the caller's own, whatever it is called
        rows = np.stack([x, y], axis=1)
    elif metric.name == "loss":
        rows = np.stack([losses.cpu().double().numpy(), np.ones(len(x))], axis=1)
    else:
        rows = pair_sums(x, y)
    return Marks(rows, x.tolist())


def regression(
    examples: Any,
    metric: Any = "spearman",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
) -> Regression:
    """A regression task from (text, number) or (text, text2, number), or a file with columns.

    `metric` is "spearman", "pearson" or "loss", the mean squared error; or a function of predicted
    and true numbers, or a metric of Hugging Face's evaluate.

    >>> regression([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)])
    Regression('examples in hand', 2 examples, spearman)
    """
    chosen = tasks.read_metric("regression", metric, METRICS)
    found = read_labelled(examples, "regression", Columns(text, text2, label, header))
    return Regression(found.examples, chosen, found.name)


# --- Similarity ---------------------------------------------------------------------------------


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
        texts = self.texts(self._order())
        stacks = ("enc",) if subject.kind == "enc-dec" else None
        return self.encoded(texts, subject, 2 * batch_size, stacks=stacks, sort=False)

    def texts(self, order: Sequence[int] | None = None) -> list[Item]:
        """Both texts of each example, one below the other."""
        return [
            Sentence(self.prefix + text, line=self.examples[number].line)
            for number in (range(len(self)) if order is None else order)
            for text in (self.examples[number].text, self.examples[number].second)
        ]

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with one number an example instead of two rows, and gold scores as labels."""
        order, rows = self._order(), batch.index
        # A text without any token is left out, and everything behind it would be shifted.
        start = rows[0] - rows[0] % 2
        missing = {*range(start, start + len(rows) + len(rows) % 2)} - {*rows}
        if missing:
            raise self.no_token(order[min(missing) // 2], subject)
        index = [order[row // 2] for row in rows[::2]]
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
        return number_marks(self.metric, answer, tasks.labels_of(batch, answer), losses)

    def _losses(self, said: Tensor, batch: Batch) -> Tensor:
        low, high = self.span
        return (said - (tasks.labels_of(batch, said) - low) / (high - low)) ** 2

    def _order(self) -> list[int]:
        """Examples by the length of their longer text, longest first."""
        lengths = [-max(len(one.text), len(one.second or "")) for one in self.examples]
        return sorted(range(len(self)), key=lengths.__getitem__)


def embed(subject: Subject, batch: Batch) -> Tensor:
    """The mean of the last hidden state over real tokens, ``[row, hidden]``, in float32."""
    batch = batch.to(subject.device)
    side = batch.sides["source" if "source" in batch.sides else "target"]
    real = side.real[:, :, None].float()
    hidden: Tensor
    if subject.kind == "enc-dec":
        hidden = tasks.forward(subject, batch).encoder_last_hidden_state
    elif subject.inner.base_model is subject.inner:
        hidden = tasks.forward(subject, batch).last_hidden_state
    else:
        with capture_hooks_off(subject.model):
            hidden = tasks.forward(subject, batch, output_hidden_states=True).hidden_states[-1]
    return (hidden.float() * real).sum(dim=1) / real.sum(dim=1)


def similarity(
    examples: Any,
    metric: Any = "spearman",
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
    chosen = tasks.read_metric("similarity", metric, METRICS)
    found = read_labelled(examples, "similarity", Columns(text, text2, label, header))
    if found.examples[0].second is None:
        raise InputError(
            f"{found.name} has one text an example; similarity takes (text, text2, score), in a "
            "file the columns text, text2 and label."
        )
    scores = [float(example.label) for example in found.examples]
    low, high = (min(scores), max(scores)) if span is None else span
    if span is not None and not low < high:
        raise UsageError(f"The span is {low:g} to {high:g}; give the lower score first.")
    # A single score has no span of its own: it is taken as nothing alike.
    span = (low, high) if low < high else (low, low + 1.0)
    return Similarity(found.examples, chosen, found.name, span, prefix)
