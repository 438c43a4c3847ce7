"""A task: examples, a metric, and how a model is run on them."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headcount.errors import InputError, ModelError, UsageError
from headcount.models.finite import check_finite
from headcount.models.rest import at_rest
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.tasks.example import content, place
from headcount.tasks.metric import Metric
from headcount.tasks.outcome import Outcome
from headcount.tasks.sheet import Marks, Sheet
from headcount.text.batch import Batch
from headcount.text.corpus import Corpus
from headcount.text.encode import Encoded, Long, encode
from headcount.text.intake import intake_of

__all__ = ["Task"]


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

    def batches(self, subject: Subject, batch_size: int = 16) -> Iterator[Batch]:
        """Batches with their labels, on the CPU; `index` says which example a row is."""
        self.check(subject)
        for batch in self.encode(subject, batch_size):
            yield self.dress(batch, subject)

    def evaluate(
        self,
        subject: Subject,
        *,
        batch_size: int = 16,
        progress: Progress | None = None,
        batches: Iterable[Batch] | None = None,
    ) -> Outcome:
        """Run a model over all examples, in eval mode, and give what it scored.

        Works under an open valve. `batches` are those of `self.batches`, for callers that evaluate
        many times and would tokenise once.
        """
        self.check(subject)
        source = self.encode(subject, batch_size) if batches is None else batches
        sheet = Sheet(len(self))
        with at_rest(subject.model), torch.no_grad():
            for batch in source:
                dressed = self.dress(batch, subject) if batches is None else batch
                marks = self.mark(self.answer(subject, dressed), dressed)
                self.check_numbers(marks, dressed, subject)
                sheet.add(dressed.index, marks)
                if progress is not None:
                    progress(sheet.done, len(self))
        notes = source.report.sentences_in_words() if isinstance(source, Encoded) else []
        return self.outcome(sheet, subject, notes)

    def outcome(self, sheet: Sheet, subject: Subject, notes: Sequence[str] = ()) -> Outcome:
        """The outcome of all that was marked."""
        self._check_all_there(sheet, subject)
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

    def part(self, numbers: Sequence[int]) -> Task:
        """The same task on some of its examples."""
        return replace(self, examples=tuple(self.examples[number] for number in numbers))

    def limit(self, count: int, seed: int | None = None) -> Task:
        """The first so many examples, or with a seed a random sample, in their order."""
        if count < 1:
            raise UsageError(f"The limit is {count}; it must be 1 or more.")
        if count >= len(self):
            return self
        if seed is None:
            return self.part(range(count))
        return self.part(sorted(random.Random(seed).sample(range(len(self)), count)))

    def split(self, share: float, seed: int = 0) -> tuple[Task, Task]:
        """Two tasks: a random share of the examples to choose by, and the rest to judge by."""
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

    def _check_all_there(self, sheet: Sheet, subject: Subject) -> None:
        if sheet.missing:
            raise self.no_token(sheet.missing[0], subject)

    def no_token(self, number: int, subject: Subject) -> InputError:
        """The error for an example that the tokenizer finds nothing in."""
        return InputError(
            f"{self._place(number)} of {self.name} has a text in which the tokenizer of "
            f"{subject.name} finds no token; drop it."
        )

    def _place(self, number: int) -> str:
        return place(number, getattr(self.examples[number], "line", None))
