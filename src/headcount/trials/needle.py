"""Retrieval: does a head look at the very token that the model copies out of a long text?

Wu et al. 2024, equation 1: of the needle's tokens, the share for which the head's largest weight,
while the model says the token, lies on that token inside the needle. By default the answer is
put into the model's mouth (teacher forcing: the same for every model, and quick); with
`generated` the model says it itself, as in the paper.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from headcount.columns import Column
from headcount.models.quiet import quiet
from headcount.subject import Subject
from headcount.text.batch import Batch, ready_batch
from headcount.text.intake import intake_of
from headcount.trials.answer import measure_of
from headcount.trials.haystack import Haystack, haystacks
from headcount.trials.question import Finding, Findings, Measure, ask
from headcount.trials.said import said, speaks
from headcount.wiring import Needs, Sighting

__all__ = ["RETRIEVAL", "Needle", "Pointing", "said_by"]

RETRIEVAL = Column(
    "retrieval",
    meaning="Share of a needle's tokens that the head points at while the model copies them out "
    "of a long text.",
    paper="Wu et al. 2024, equation 1",
    range=(0, 1),
    direction="higher",
    group="What it finds again",
)

_ALL = frozenset[str]()


@dataclass
class Pointing:
    """The question: is the top key of the row the token to be said, inside the needle?"""

    examples: Sequence[Haystack]
    finding: Finding = field(default_factory=lambda: Finding(RETRIEVAL, "a random token"))
    needs = Needs(tops=frozenset({_ALL}))

    def update(self, sighting: Sighting) -> None:
        """Count the tokens pointed at in each example."""
        keys = sighting.tops[_ALL][1]
        hits, chance, cells = [], [], []
        for row, index in enumerate(sighting.batch.index):
            example = self.examples[index]
            wanted = _wanted(example).to(keys.device)
            top = keys[row, :, example.rows]
            hits.append(
                torch.gather(wanted.expand(len(top), -1, -1), 2, top[..., None]).sum((1, 2))
            )
            chance.append((wanted.sum(-1) / sighting.visible[row, example.rows].double()).sum())
            cells.append(len(example.answer))
        counted = torch.stack(hits), torch.stack(chance), torch.tensor(cells, device=keys.device)
        self.finding.marks.add(sighting.site, sighting.batch.index, *counted)


@dataclass(frozen=True)
class Needle:
    """Needles in haystacks; answers `retrieval`, and whether the model retrieves at all."""

    texts: Sequence[str]
    #: Tokens of the whole input.
    lengths: tuple[int, ...] = (96, 192)
    #: Where the needle lies: 0 at the beginning, 1 at the end.
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    #: Examples of each length and depth.
    each: int = 2
    generated: bool = False
    batch_size: int = 4
    seed: int = 0
    name = "needle"
    columns: tuple[Column, ...] = (RETRIEVAL,)

    def unfit(self, subject: Subject) -> str | None:
        """Only decoder-only models that read text and predict tokens."""
        if subject.kind != "dec":
            return "only decoders that read text by themselves are asked"
        if subject.tokenizer is None:
            return "the model has no tokenizer to read text"
        if not speaks(subject):
            return "the model has no layer that predicts tokens"
        limit = intake_of(subject.model, subject.tokenizer).target_limit
        if limit is not None and limit < max(self.lengths):
            return (
                f"the model takes {limit} tokens and the longest haystack has {max(self.lengths)}"
            )
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Make the haystacks, see what the model says, and ask the heads."""
        made = haystacks(subject, self.texts, self.lengths, self.depths, self.each, self.seed)
        if self.generated:
            made = [said_by(subject, example) for example in made]
        measures = self.accuracy(subject, made)
        question = Pointing(made)
        ask(subject, self._batches(subject, made), [question])
        return Findings([question.finding], measures)

    def _batches(self, subject: Subject, made: Sequence[Haystack]) -> Iterator[Batch]:
        """Examples of one length together, so that nothing is padded."""
        first = 0
        for _, group in groupby(made, key=lambda example: len(example.ids)):
            rows = [example.ids for example in group]
            for start in range(0, len(rows), self.batch_size):
                ids = torch.tensor(rows[start : start + self.batch_size])
                inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
                yield ready_batch(inputs, subject.anatomy.stacks, first + start)
            first += len(rows)

    def accuracy(self, subject: Subject, made: Sequence[Haystack]) -> list[Measure]:
        """The share of the answer's tokens that the model itself would say."""
        hits, longest = np.zeros(len(made)), max(len(example.answer) for example in made)
        for batch in self._batches(subject, made):
            with torch.no_grad():
                likely = said(subject, batch, last=longest + 1).argmax(-1).cpu()
            for row, index in enumerate(batch.index):
                answer = torch.tensor(made[index].answer)
                hits[index] = (likely[row, -len(answer) - 1 : -1] == answer).sum()
        cells = np.array([float(len(example.answer)) for example in made])
        return [measure_of(self.name, "right tokens of the answer", hits, cells, (0, 1))]


def _wanted(example: Haystack) -> Tensor:
    """Which keys hold the token that a row predicts, inside the needle: ``[row, key]``."""
    ids = torch.tensor(example.ids)
    inside = torch.zeros_like(ids, dtype=torch.bool)
    inside[example.needle : example.needle + len(example.answer)] = True
    said_next = ids[example.rows.start + 1 :]
    return (ids == said_next[:, None]) & inside


def said_by(subject: Subject, example: Haystack) -> Haystack:
    """The example with what the model itself goes on to say, greedily."""
    settings = copy.deepcopy(subject.inner.generation_config)
    new = len(example.answer)
    settings.update(do_sample=False, num_beams=1, max_new_tokens=new, min_new_tokens=new)
    prompt = torch.tensor([example.ids[: len(example.ids) - new]], device=subject.device)
    with quiet(), torch.no_grad():
        ids = subject.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), generation_config=settings
        )
    return example.answering(ids[0, prompt.shape[1] :].tolist())
