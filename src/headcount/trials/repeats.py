"""Random tokens said twice: what a head does when a text it has never seen begins again.

Olsson et al. 2022, "In-context learning and induction heads": random tokens carry no meaning and no
grammar, so only the repeat itself can be found in them. Each example is a sequence of distinct
random tokens followed by itself, between the special tokens of the tokenizer. The two sides of an
encoder-decoder are drawn apart, so that no source token tells the decoder anything about its own
text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from headcount.columns import Column
from headcount.subject import Subject
from headcount.text.batch import Batch, ready_batch
from headcount.text.intake import intake_of
from headcount.trials.duplicate import DUPLICATE, duplicate_question
from headcount.trials.induction import INDUCTION, induction_question
from headcount.trials.layout import Layout
from headcount.trials.plain_ids import plain_ids
from headcount.trials.previous import PREVIOUS_RANDOM, previous_question
from headcount.trials.question import Findings, ask
from headcount.trials.wrapping import wrapping_of

__all__ = ["Repeats"]

#: A sequence shorter than this leaves chance too high to tell anything.
SHORTEST = 4


@dataclass(frozen=True)
class Repeats:
    """Random sequences said twice; answers `induction`, `duplicate` and `previous_random`."""

    #: Tokens before the repeat; fewer where the model cannot take twice as many.
    length: int = 32
    examples: int = 20
    batch_size: int = 8
    seed: int = 0
    name = "repeats"
    columns: tuple[Column, ...] = (INDUCTION, DUPLICATE, PREVIOUS_RANDOM)

    def unfit(self, subject: Subject) -> str | None:
        """Models that read no token ids, or too few of them."""
        if subject.inner.main_input_name != "input_ids":
            return "the model reads no token ids"
        if self.fitted(subject) < SHORTEST:
            return f"the model takes fewer than {2 * SHORTEST} tokens"
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Run the sequences and ask all three questions."""
        layout = self.layout(subject)
        questions = [
            question(layout)
            for question in (induction_question, duplicate_question, previous_question)
        ]
        stacks = [stack for stack in subject.anatomy.stacks if stack != "cross"]
        ask(subject, self.batches(subject), questions, stacks)
        return Findings([question.finding for question in questions])

    def fitted(self, subject: Subject) -> int:
        """The length that the model can take twice, and draw without repetition."""
        intake = intake_of(subject.model, subject.tokenizer)
        room = [(intake.source_limit, False)] if subject.kind != "dec" else []
        room += [(intake.target_limit, True)] if subject.kind != "enc" else []
        lengths = [self.length]
        for limit, target in room:
            wrapped = len(wrapping_of(subject, target=target and subject.kind != "dec").around([]))
            lengths.append(len(plain_ids(subject, target=target and subject.kind != "dec")))
            if limit is not None:
                lengths.append((limit - wrapped - (subject.kind == "enc-dec")) // 2)
        return min(lengths)

    def layout(self, subject: Subject) -> Layout:
        """Where the sequence stands on each side."""
        translates = subject.kind == "enc-dec"
        before = {"source": len(wrapping_of(subject).before)}
        # A decoder's input begins with the start token and then reads its labels.
        target = (
            len(wrapping_of(subject, target=True).before) + 1 if translates else before["source"]
        )
        return Layout(self.fitted(subject), before | {"target": target})

    def batches(self, subject: Subject) -> Iterator[Batch]:
        """The examples, the same for the same seed whatever the batch size."""
        inputs = self._inputs(subject)
        for first in range(0, self.examples, self.batch_size):
            part = {name: rows[first : first + self.batch_size] for name, rows in inputs.items()}
            yield ready_batch(part, subject.anatomy.stacks, first)

    def _inputs(self, subject: Subject) -> dict[str, Tensor]:
        """What the model takes, all examples."""
        ids = self._twice(subject, 0, target=False)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        intake = intake_of(subject.model, subject.tokenizer)
        if intake.shift is not None:
            inputs["decoder_input_ids"] = intake.shift(self._twice(subject, 1, target=True))
            if intake.accepts("decoder_attention_mask"):
                inputs["decoder_attention_mask"] = torch.ones_like(inputs["decoder_input_ids"])
        return inputs

    def _twice(self, subject: Subject, stream: int, *, target: bool) -> Tensor:
        """Every example's sequence, said twice and wrapped, ``[example, token]``."""
        rng = np.random.default_rng([self.seed, stream])
        known, length = plain_ids(subject, target=target), self.fitted(subject)
        wrapping = wrapping_of(subject, target=target)
        if target and not wrapping.after:  # a decoder never reads the last of its labels
            wrapping = replace(wrapping, after=(known[0],))
        drawn = [rng.choice(known, length, replace=False).tolist() for _ in range(self.examples)]
        return torch.tensor([wrapping.around(ids + ids) for ids in drawn])
