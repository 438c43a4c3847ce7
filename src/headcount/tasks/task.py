"""A task: examples, a metric, and how a model is run on them."""

from __future__ import annotations

import hashlib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.errors import InputError, ModelError, UsageError
from headcount.models import Subject, check_finite, eval_mode
from headcount.records import old_keywords, working
from headcount.stats import DRAWS, Floats, Interval, Statistic, bootstrap_interval, ratio
from headcount.tasks.comparison import Comparison, Metric, compare_outcomes
from headcount.tasks.examples import Labelled, content, example_name
from headcount.text import Batch, Corpus, Encoded, Item, Long, Pair, Sentence, encode, intake_of

# --- The mark sheet -----------------------------------------------------------------------------


class Marks(NamedTuple):
    """The counts of one batch, a row per example, and the model's outputs."""

    statistics: Floats
    outputs: list[Any]


class Sheet:
    """Marks of all examples, filled batch by batch; windows of one example add up.

    >>> sheet = Sheet(2)
    >>> sheet.add([1, 1], Marks(np.array([[1.0, 2.0], [3.0, 4.0]]), []))
    >>> sheet.statistics[1], sheet.missing
    (array([4., 6.]), [0])
    """

    def __init__(self, examples: int) -> None:
        self._examples = examples
        self._statistics: Floats | None = None
        self._outputs: dict[int, Any] = {}
        self._seen: set[int] = set()

    def add(self, index: Sequence[int], marks: Marks) -> None:
        """Add a batch's marks to the examples they belong to."""
        if self._statistics is None:
            self._statistics = np.zeros((self._examples, marks.statistics.shape[1]))
        np.add.at(self._statistics, list(index), marks.statistics)
        self._outputs.update(zip(index, marks.outputs, strict=False))
        self._seen.update(index)

    @property
    def done(self) -> int:
        """How many examples have been seen."""
        return len(self._seen)

    @property
    def missing(self) -> list[int]:
        """Examples that no batch had."""
        return [number for number in range(self._examples) if number not in self._seen]

    @property
    def statistics(self) -> Floats:
        """All statistics, ``[example, column]``."""
        assert self._statistics is not None  # a task has one example or more
        return self._statistics

    @property
    def outputs(self) -> list[Any]:
        """The model's output for each example; empty if nothing was kept."""
        return [self._outputs[number] for number in sorted(self._outputs)]


# --- The outcome of a task ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What a model scored: one row of statistics an example, and everything that follows from it.

    >>> import numpy as np
    >>> from headcount.tasks.task import ACCURACY
    >>> outcome = Outcome(ACCURACY, np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> outcome
    Outcome(accuracy 0.75 over 4 examples)
    >>> outcome.scores
    array([1., 1., 0., 1.])
    """

    metric: Metric
    #: Sufficient statistics, ``[example, column]``; `metric.columns` names them.
    statistics: Floats
    #: What the model said: translations, labels, numbers; empty for a loss.
    outputs: Sequence[Any] = ()
    #: What a reader should know, e.g. why the value is NaN, or how many examples were cut.
    notes: tuple[str, ...] = ()
    #: The task and the model, in plain words and numbers.
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.statistics)

    def __repr__(self) -> str:
        return f"Outcome({self.name} {self.value:.4g} over {len(self):,} examples)"

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the metric is better."""
        return self.metric.higher_is_better

    @property
    def signature(self) -> str | None:
        """How sacreBLEU names exactly this metric; None for other metrics."""
        return self.metric.signature

    @property
    def statistic(self) -> Statistic | None:
        """The metric as a function of summed statistics; None for Spearman, which no sum gives."""
        return self.metric.statistic

    @cached_property
    def value(self) -> float:
        """The metric over all examples; NaN where it is undefined, with the reason in `notes`."""
        return self.metric.value(self.statistics)

    @cached_property
    def scores(self) -> Floats:
        """What each example scores, ``[example]``: loss a token, right or wrong, sentence BLEU."""
        return self.metric.scores(self.statistics)

    def resample(self, weights: Floats) -> Floats:
        """The metric of resampled examples, ``[draw, example]`` counts to ``[draw]``."""
        return self.metric.resample(self.statistics, weights)

    def interval(self, *, draws: int = DRAWS, confidence: float = 0.95, seed: int = 0) -> Interval:
        """The metric with its percentile interval, from resampled examples."""
        return bootstrap_interval(
            self.statistics,
            self.statistic,
            redrawn=self.metric.drawn,
            draws=self.metric.draws(draws),
            confidence=confidence,
            seed=seed,
        )

    def against(
        self,
        other: Outcome,
        *,
        draws: int = DRAWS,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> Comparison:
        """This outcome minus another of the same task: difference, interval and p value.

        The test is McNemar's exact one for accuracy, sign flips for losses, and the paired
        bootstrap for everything else; see `headcount.tasks.compare` for many outcomes at once.
        """
        many = compare_outcomes([self], other, draws=draws, confidence=confidence, seed=seed)
        return many.one(0)


# --- A task: examples, a metric, and how a model is run on them ---------------------------------


@dataclass(frozen=True)
class Task(ABC):
    """What 'good' means for a model; `hc.tasks` makes one.

    `evaluate` runs a model over all examples and gives an `Outcome`. For sweeps over heads the
    same work comes in parts: `batches` once, then for each batch `answer` (what the model says)
    and `mark` (what it is worth), and `outcome` at the end. `loss` is differentiable.
    """

    kind: ClassVar[str]

    examples: tuple[Any, ...]
    metric: Metric
    #: Where the examples come from.
    name: str

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self):,} examples, {self.metric.name})"

    @property
    def generates(self) -> bool:
        """Whether the model generates, token by token, to be measured."""
        return False

    # --- what every kind says for itself ----------------------------------------------------

    def check(self, subject: Subject) -> None:  # noqa: B027  some kinds take any model
        """Raise `ModelError` unless the model can do this task at all."""

    @abstractmethod
    def encode(self, subject: Subject, batch_size: int) -> Iterable[Batch]:
        """Examples as batches, their targets not yet in."""

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with its labels."""
        return batch

    @abstractmethod
    def answer(self, subject: Subject, batch: Batch) -> Any:
        """What the model says: logits, numbers or translations."""

    @abstractmethod
    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The loss of each example of a batch, summed over its target tokens: ``[example]``.

        Differentiable, e.g. in the scales of an open valve. The model's mode is left alone: put
        it in eval mode unless dropout is wanted.
        """

    @abstractmethod
    def mark(self, answer: Any, batch: Batch) -> Marks:
        """What the metric counts in an answer, a row each."""

    # --- what follows from that --------------------------------------------------------------

    def chance(self, subject: Subject) -> float | None:
        """What is reached without a look at the examples, by how often each label occurs alone.

        One answer for all, or for losses these shares as the prediction; None where nobody knows.
        """
        found = [batch.labels for batch in self.batches(subject)]
        labels = torch.cat([one.flatten() for one in found if one is not None] or [torch.empty(0)])
        if labels.is_floating_point():  # numbers to predict, or nothing at all
            return 0.0 if self.metric.name in ("pearson", "spearman") else None
        counts = labels[labels != IGNORED].unique(return_counts=True)[1].double()
        shares = counts / counts.sum()
        entropy = float(-(shares * shares.log()).sum())
        known = {"accuracy": float(shares.max()), "matthews": 0.0, "loss": entropy}
        return (known | {"perplexity": math.exp(min(entropy, 700))}).get(self.metric.name)

    def batches(self, subject: Subject, batch_size: int = 16) -> Iterator[Batch]:
        """Batches with their labels, on the CPU; `index` says which example a row is."""
        self.check(subject)
        for batch in self.encode(subject, batch_size):
            yield self.dress(batch, subject)

    @old_keywords()
    def evaluate(
        self,
        subject: Subject,
        *,
        batch_size: int = 16,
        batches: Iterable[Batch] | None = None,
    ) -> Outcome:
        """Run a model over all examples, in eval mode, and give what it scored.

        Works under an open valve. `batches` are those of `self.batches`, for callers that evaluate
        many times and would tokenise once.
        """
        self.check(subject)
        source = self.encode(subject, batch_size) if batches is None else batches
        sheet = Sheet(len(self))
        shown = working("Scoring", len(self))
        with eval_mode(subject.model), torch.no_grad(), shown as steps:
            for batch in source:
                dressed = self.dress(batch, subject) if batches is None else batch
                marks = self.mark(self.answer(subject, dressed), dressed)
                self.check_numbers(marks, dressed, subject)
                sheet.add(dressed.index, marks)
                steps.to(sheet.done)
        notes = source.report.sentences_in_words() if isinstance(source, Encoded) else []
        return self.outcome(sheet, subject, notes)

    def outcome(self, sheet: Sheet, subject: Subject, notes: Sequence[str] = ()) -> Outcome:
        """The outcome of all that was marked."""
        if sheet.missing:
            raise self.no_token(sheet.missing[0], subject)
        statistics = sheet.statistics
        outcome = Outcome(
            metric=self.metric,
            statistics=statistics,
            outputs=sheet.outputs,
            provenance={"task": self.describe(), "model": subject.name},
        )
        said = list(notes)
        if np.isnan(outcome.value):
            said.append(f"The {self.metric.name} is undefined: {self.metric.reason(statistics)}.")
        return replace(outcome, notes=tuple(said))

    def describe(self) -> dict[str, Any]:
        """What a run keeps about its task."""
        own = {field.name for field in fields(Task)}
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            "kind": self.kind,
            "examples": len(self),
            "data": self.name,
            "hash": self.hash,
            "metric": self.metric.name,
            "signature": self.metric.signature,
            # A function is kept by its name.
            **{
                name: getattr(value, "__name__", value)
                for name, value in settings.items()
                if name not in own
            },
        }

    @cached_property
    def hash(self) -> str:
        """The sha256 of the examples, in order."""
        digest = hashlib.sha256()
        for example in self.examples:
            raw = repr(content(example)).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(raw) + raw)
        return digest.hexdigest()

    def texts(self) -> list[Item]:
        """What the model reads, as sentences or pairs; refused where examples are none."""
        return [self._text(example) for example in self.examples]

    def _text(self, example: Any) -> Item:
        if isinstance(example, Pair | Sentence):
            return example
        if not isinstance(example, Labelled):
            raise UsageError(
                f"A {self.kind} task has examples of the type {type(example).__name__} and no "
                "texts to look at; survey the model on texts and pass that table."
            )
        if example.second is None:
            return Sentence(example.text, line=example.line)
        return Pair(example.text, example.second, example.line)

    def part(self, numbers: Sequence[int]) -> Task:
        """The same task on some of its examples."""
        return replace(self, examples=tuple(self.examples[number] for number in numbers))

    def limit(self, count: int, seed: int | None = None) -> Task:
        """The first N examples, or with a seed a random sample, in their order."""
        if count < 1:
            raise UsageError(f"The limit is {count}; it must be 1 or more.")
        if count >= len(self):
            return self
        if seed is None:
            return self.part(range(count))
        return self.part(sorted(random.Random(seed).sample(range(len(self)), count)))

    def split(self, share: float, seed: int = 0) -> tuple[Task, Task]:
        """Two tasks: a random share of the examples to choose by, the others to judge by."""
        count = round(share * len(self))
        if not 0 < count < len(self):
            raise UsageError(
                f"A share of {share:g} cuts {len(self)} examples into {count} and "
                f"{len(self) - count}; both parts need one or more."
            )
        chosen = set(random.Random(seed).sample(range(len(self)), count))
        rest = [number for number in range(len(self)) if number not in chosen]
        return self.part(sorted(chosen)), self.part(rest)

    def encoded(
        self,
        items: Sequence[Any],
        subject: Subject,
        batch_size: int,
        *,
        stacks: Sequence[str] | None = None,
        long: Long = "truncate",
        sort: bool = True,
        chat: bool = False,
    ) -> Encoded:
        """Texts of this task as batches for a model."""
        return encode(
            Corpus(lambda skipped: iter(items), self.name),
            subject.tokenizer,
            stacks=stacks or subject.anatomy.stacks,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
            long=long,
            sort=sort,
            chat=chat,
        )

    def check_numbers(self, marks: Marks, batch: Batch, subject: Subject) -> None:
        """Stop at an answer that is not a number, naming the weights to blame if any are."""
        broken = np.flatnonzero(~np.isfinite(marks.statistics).all(axis=1))
        if not len(broken):
            return
        check_finite(subject)
        raise ModelError(
            f"{self._place(batch.index[broken[0]])} of {self.name}: the {self.metric.name} of "
            f"{subject.name} is not a number, although all its weights are; {subject.dtype} may be "
            "too small: load it with dtype='float32'."
        )

    def no_token(self, number: int, subject: Subject) -> InputError:
        """The error for an example that the tokenizer finds nothing in."""
        return InputError(
            f"{self._place(number)} of {self.name} has a text in which the tokenizer of "
            f"{subject.name} finds no token; drop it."
        )

    def _place(self, number: int) -> str:
        return example_name(number, getattr(self.examples[number], "line", None))


# --- The loss of predicted tokens ---------------------------------------------------------------

#: The label of a place where nothing is to be predicted.
IGNORED = -100


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The summed loss of each row, ``[row, token, word]`` and ``[row, token]`` to ``[row]``.

    Summed, not averaged: then the gradient of one row does not depend on its neighbours.

    >>> row_losses(torch.zeros(1, 3, 4), torch.tensor([[2, 0, IGNORED]])).exp().round()
    tensor([16.])
    """
    flat = logits.float().flatten(0, 1)
    losses = cross_entropy(flat, labels.flatten(), ignore_index=IGNORED, reduction="none")
    return losses.view_as(labels).sum(dim=-1)


def label_counts(labels: Tensor) -> Tensor:
    """How many places of each row are to be predicted, ``[row]``."""
    return (labels != IGNORED).sum(dim=-1)


def labels_of(batch: Batch, like: Tensor) -> Tensor:
    """A batch's labels, beside the logits."""
    assert batch.labels is not None  # a task's own batches have labels
    return batch.labels.to(like.device)


def row_marks(counted: Tensor, labels: Tensor) -> Marks:
    """What was counted in each row, and the number of its labels."""
    both = torch.stack([counted, label_counts(labels).float()], dim=1)
    return Marks(both.cpu().double().numpy(), [])


def _perplexity(sums: Floats) -> Floats:
    with np.errstate(over="ignore"):  # a broken model may well be infinitely perplexed
        return np.exp(ratio(sums))


#: Nats a token, over all tokens of all examples.
LOSS = Metric("loss", ("loss", "tokens"), ratio, higher_is_better=False, test="sign-flip")
PERPLEXITY = Metric(
    "perplexity", ("loss", "tokens"), _perplexity, higher_is_better=False, test="sign-flip"
)
#: The mean loss of an example, where an example is one prediction.
MEAN_LOSS = Metric("loss", ("loss", "examples"), ratio, higher_is_better=False, test="sign-flip")


#: The share of examples that are right, where an example is one prediction.
ACCURACY = Metric("accuracy", ("hits", "examples"), ratio, test="mcnemar")

# --- One forward of the whole model -------------------------------------------------------------


def forward(subject: Subject, batch: Batch, **options: Any) -> Any:
    """The model's output for a batch, on the model's device; nothing is cached on the way."""
    if intake_of(subject.model).accepts("use_cache"):
        options["use_cache"] = False
    return subject.model(**batch.to(subject.device).inputs, **options)


def logits_of(subject: Subject, batch: Batch, *, axes: int, needs: str) -> Tensor:
    """The logits of a batch, of so many axes; a model that gives others is refused."""
    logits = getattr(forward(subject, batch), "logits", None)
    if not isinstance(logits, Tensor) or logits.dim() != axes:
        raise refuse(subject, needs)
    return logits


def refuse(subject: Subject, needs: str) -> ModelError:
    """The error for a model of the wrong kind for a task."""
    return ModelError(
        f"{needs}, and {subject.name} is of the class {type(subject.inner).__name__}."
    )


# --- What tasks that predict tokens share -------------------------------------------------------


@dataclass(frozen=True, repr=False)
class TokenTask(Task):
    """Texts for a model that gives logits for every token; labels are ``[row, token]``."""

    #: What a model must have, in words.
    needs: ClassVar[str]

    def answer(self, subject: Subject, batch: Batch) -> Any:
        """Logits, ``[row, token, word]``."""
        return logits_of(subject, batch, axes=3, needs=self.needs)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Nats of each row, summed over the tokens that have a label: ``[row]``."""
        logits = logits_of(subject, batch, axes=3, needs=self.needs)
        return row_losses(logits, labels_of(batch, logits))

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Loss and labelled tokens of each row."""
        labels = labels_of(batch, answer)
        return row_marks(row_losses(answer, labels), labels)


# --- A task of the caller's own -------------------------------------------------------------------

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
