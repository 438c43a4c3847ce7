"""What trials are made of: token ids that are cut and wrapped, runs that metrics look at, and
what the model itself predicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from operator import or_
from typing import Protocol

import numpy as np
from torch import Tensor

from headcount import tasks
from headcount.errors import InputError
from headcount.models import Subject, eval_mode
from headcount.stats import Floats
from headcount.surveys import Counted, Measure, interval_of
from headcount.text import Batch, EncodeReport, RowTokenizer, intake_of
from headcount.wiring import Needs, Sighting, tap


class TrialMetric(Protocol):
    """Reads sightings and counts hits."""

    @property
    def needs(self) -> Needs:
        """What it needs of each map."""

    def update(self, sighting: Sighting) -> None:
        """Count the hits of one site's heads on one batch."""


def run_metrics(
    subject: Subject,
    batches: Iterable[Batch],
    metrics: Sequence[TrialMetric],
    stacks: Collection[str] | None = None,
) -> None:
    """Run every batch and update every metric with every site of it."""
    needs = reduce(or_, (metric.needs for metric in metrics), Needs())

    def receive(sighting: Sighting) -> None:
        for metric in metrics:
            metric.update(sighting)

    with tap(subject, needs, stacks=stacks) as watch:
        for batch in batches:
            watch(batch, receive=receive)


def measure_of(
    trial: str, name: str, hits: Floats, cells: Floats, bounds: tuple[float, float] | None = None
) -> Measure:
    """A figure of the model over examples, ``[example]``, with its interval."""
    counted = Counted(hits[:, None], np.zeros_like(hits)[:, None], cells[:, None])
    value, low, high = (float(part[0]) for part in interval_of(counted, bounds))
    return Measure(trial, name, value, low, high, int(cells.sum()))


@dataclass(frozen=True)
class Layout:
    """A sequence of `length` tokens, repeated once, behind the special tokens of each side.

    >>> layout = Layout(3, {"target": 1})
    >>> layout.first("target"), layout.second("target")
    (slice(1, 4, None), slice(4, 7, None))
    """

    length: int
    #: How many tokens stand in front of it, by side ("source", "target").
    before: Mapping[str, int]

    def first(self, side: str) -> slice:
        """The places of the sequence."""
        start = self.before[side]
        return slice(start, start + self.length)

    def second(self, side: str) -> slice:
        """The places of the repeat."""
        start = self.before[side] + self.length
        return slice(start, start + self.length)

    def both(self, side: str) -> slice:
        """All places."""
        return slice(self.before[side], self.before[side] + 2 * self.length)


@dataclass(frozen=True)
class Wrapping:
    """Ids in front of a text and behind it.

    >>> Wrapping((1,), (2,)).around([7, 8])
    [1, 7, 8, 2]
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """A text's ids between them."""
        return [*self.before, *ids, *self.after]


def wrapping_of(subject: Subject, *, target: bool = False) -> Wrapping:
    """How the subject's tokenizer wraps a text; nothing where there is no tokenizer."""
    if subject.tokenizer is None:
        return Wrapping()
    row = RowTokenizer(subject.tokenizer, EncodeReport()).rows(["a"], target=target)[0]
    before = len(list(takewhile(bool, row.special)))
    after = len(list(takewhile(bool, reversed(row.special)))) if before < len(row.ids) else 0
    return Wrapping(tuple(row.ids[:before]), tuple(row.ids[len(row.ids) - after :]))


class Stream:
    """Token ids that follow one another; a cut may go round the end, once.

    >>> Stream([1, 2, 3, 4]).cut(3, 3)
    [4, 1, 2]
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, start: int, length: int) -> list[int]:
        """N ids from a place on."""
        if length > len(self):
            raise InputError(
                f"The text has {len(self):,} tokens and the trial cuts {length:,} in one piece; "
                "give more text, or a smaller length."
            )
        around = self.ids[start:] + self.ids[:start]
        return around[:length]

    def windows(self, length: int, most: int) -> list[list[int]]:
        """Pieces of one length that follow one another without overlap, the first so many."""
        whole = range(0, len(self) - length + 1, length)
        if not whole:
            raise InputError(
                f"The text has {len(self):,} tokens and the trial reads windows of {length}; give "
                "more text, or a smaller length."
            )
        return [self.ids[start : start + length] for start in whole][:most]


def stream_of(subject: Subject, texts: Sequence[str]) -> Stream:
    """Texts joined by a space, as the tokenizer writes them, without special tokens."""
    assert subject.tokenizer is not None  # trials on text are unfit without one
    spaced = [texts[0], *(f" {text}" for text in texts[1:])] if texts else []
    rows = RowTokenizer(subject.tokenizer, EncodeReport()).rows(spaced) if spaced else []
    return Stream(
        [
            number
            for row in rows
            for number, special in zip(row.ids, row.special, strict=True)
            if not special
        ]
    )


def predicts_tokens(subject: Subject) -> bool:
    """Whether the model has a layer from hidden states to the vocabulary."""
    return subject.inner.get_output_embeddings() is not None


def token_logits(subject: Subject, batch: Batch, last: int = 0) -> Tensor:
    """Logits ``[row, token, word]`` of a batch, dropout off, with gradients where they are wanted.

    With `last`, those of the last so many tokens are enough; count from the end.
    """
    options = {"logits_to_keep": last} if intake_of(subject.model).accepts("logits_to_keep") else {}
    with eval_mode(subject.model):
        logits: Tensor = tasks.forward(subject, batch, **options).logits
    return logits
