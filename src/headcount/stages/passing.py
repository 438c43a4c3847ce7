"""One pass: a corpus goes through the model once, and every tally sees every site of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import torch

from headcount.errors import InputError
from headcount.models.finite import refuse_nan
from headcount.models.memory import enough_memory
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.tallies.tally import Tally
from headcount.text import Batch, Corpus, EncodeReport, encode, intake_of
from headcount.text.encode import Encoded, Long
from headcount.text.ready import Ready
from headcount.wiring import Needs, Sighting, tap

__all__ = ["Manner", "batches_of", "passed"]

_SMALLER = "--batch-size (batch_size=) or --max-length (max_length=)"


@dataclass(frozen=True)
class Manner:
    """How texts are given to the model, and which of its stacks are looked at."""

    stacks: tuple[str, ...]
    batch_size: int = 16
    max_length: int | None = None
    long: Long = "window"
    chat: bool = False
    #: False puts both texts of a pair in segment 0, as Clark's extraction did.
    segments: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The settings that a run keeps; numbers do not depend on the size of batches."""
        kept = {**asdict(self), "stacks": list(self.stacks)}
        return {name: value for name, value in kept.items() if name != "batch_size"}


def passed(
    subject: Subject,
    source: Corpus | Ready,
    tallies: Sequence[Tally],
    manner: Manner,
    progress: Progress | None = None,
) -> EncodeReport:
    """Run a corpus under the eyes of the tallies; what was read, cut and skipped is told."""
    batches = batches_of(subject, source, manner)
    done = 0
    needs = reduce(or_, (tally.needs for tally in tallies), Needs())
    with (
        tap(subject, needs, stacks=manner.stacks) as watch,
        enough_memory(subject, _SMALLER),
    ):
        for batch in _segmented(batches, manner.segments):
            watch(batch, receive=_shown_to(tallies))
            if not done:  # broken weights show at once, not after an hour
                check_numbers(subject, tallies)
            done += batch.window.count(0)
            if progress is not None:
                progress(done, len(source))
    check_numbers(subject, tallies)
    if not batches.report.rows:
        raise InputError(
            f"No sentence of {source.name} has a token for this tokenizer; give other text."
        )
    return batches.report


def batches_of(subject: Subject, source: Corpus | Ready, manner: Manner) -> Encoded | Ready:
    """The batches of a corpus for this model."""
    if isinstance(source, Ready):
        return source
    return encode(
        source,
        subject.tokenizer,
        stacks=manner.stacks,
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=manner.batch_size,
        max_length=manner.max_length,
        long=manner.long,
        chat=manner.chat,
    )


def check_numbers(subject: Subject, tallies: Sequence[Tally]) -> None:
    """Stop at attention that is not a number, rather than print NA for it."""
    for tally in tallies:
        for reading in tally.compute():
            if not reading.note and np.isnan(reading.value).any():
                refuse_nan(subject, f"{reading.site.stack}.{reading.site.layer}")


def _shown_to(tallies: Sequence[Tally]) -> Callable[[Sighting], None]:
    def show(sighting: Sighting) -> None:
        for tally in tallies:
            tally.update(sighting)

    return show


def _segmented(batches: Iterable[Batch], segments: bool) -> Iterator[Batch]:
    """Batches as they are, or with all tokens in segment 0."""
    for batch in batches:
        if segments or "token_type_ids" not in batch.inputs:
            yield batch
            continue
        zeros = torch.zeros_like(batch.inputs["token_type_ids"])
        yield replace(batch, inputs=batch.inputs | {"token_type_ids": zeros})
