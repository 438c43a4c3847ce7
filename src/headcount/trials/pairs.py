"""Pairs through a translator: what its cross heads look at, and where its decoder rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headcount.columns import Column
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.text.encode import encode
from headcount.text.intake import intake_of
from headcount.trials.aligner import Aligner, Links
from headcount.trials.alignment import (
    ALIGNMENT,
    ALIGNMENT_COPIES,
    ALIGNMENT_READ,
    Aligned,
    copies,
    linked,
)
from headcount.trials.answer import measure_of
from headcount.trials.question import Finding, Findings, Measure, ask
from headcount.trials.sink import SINK, Resting, sink_frame
from headcount.trials.source_end import SOURCE_END, Ending

__all__ = ["Pairs"]

_SELF = "only cross heads link two texts"
_SILENT = {"enc": _SELF, "dec": _SELF}


@dataclass(frozen=True)
class Pairs:
    """Sources with their translations; answers the alignment columns, `source_end` and `sink`."""

    pairs: Sequence[tuple[str, str]]
    #: How many pairs are run through the model, and from how many (these among them) the aligner
    #: learns.
    examples: int = 200
    learning: int = 2_500
    aligner: Aligner = field(default_factory=Aligner)
    batch_size: int = 16
    name = "pairs"
    columns: tuple[Column, ...] = (ALIGNMENT, ALIGNMENT_READ, ALIGNMENT_COPIES, SOURCE_END, SINK)

    def unfit(self, subject: Subject) -> str | None:
        """Only encoder-decoders that read text, and only where there are pairs."""
        if "cross" not in subject.anatomy.stacks:
            return "the model has no cross heads"
        if subject.tokenizer is None:
            return "the model has no tokenizer to read text"
        return None if self.pairs else "there are no pairs of texts"

    def __call__(self, subject: Subject) -> Findings:
        """Link the pairs' tokens, run some of them, and ask all questions."""
        run = _encoded(subject, self.pairs[: self.examples], self.batch_size)
        rest = _encoded(subject, self.pairs[self.examples : self.learning], self.batch_size)
        links, exact = linked(run, rest, self.aligner), copies(run)
        aligned = [
            Aligned(Finding(ALIGNMENT, "the diagonal", silent=dict(_SILENT)), links, -1),
            Aligned(Finding(ALIGNMENT_READ, "the diagonal", silent=dict(_SILENT)), links, 0),
            Aligned(Finding(ALIGNMENT_COPIES, "the diagonal", silent=dict(_SILENT)), exact, -1),
        ]
        ending, resting = Ending(), Resting()
        ask(subject, run, [*aligned, ending, resting], ("dec", "cross"))
        found = [*(question.finding for question in aligned), ending.finding, resting.finding]
        sinks = sink_frame(subject, resting, "as written")
        return Findings(found, _measures(self.name, links, exact), {"sinks": sinks})


def _encoded(subject: Subject, pairs: Sequence[tuple[str, str]], batch_size: int) -> list[Batch]:
    """Pairs in batches; none where there are none."""
    if not pairs:
        return []
    return list(
        encode(
            list(pairs),
            subject.tokenizer,
            stacks=subject.anatomy.stacks,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
        )
    )


def _measures(trial: str, links: dict[int, Links], exact: dict[int, Links]) -> list[Measure]:
    """How far the aligner can be trusted: the copies that it links, and links rightly."""
    right = np.array([len({*links[number]} & {*exact[number]}) for number in exact], dtype=float)
    touched = [{place for place, _ in links[number]} for number in exact]
    tried = [
        sum(place in seen for place, _ in exact[number])
        for number, seen in zip(exact, touched, strict=True)
    ]
    there = [len(exact[number]) for number in exact]
    names = ("copies that the aligner links", "links of copies that are right")
    return [
        measure_of(trial, name, right, np.array(cells, dtype=float), (0, 1))
        for name, cells in zip(names, (there, tried), strict=True)
        if any(cells)
    ]
