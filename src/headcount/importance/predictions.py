"""What is explained: the outputs of a model that relevance is sent back from.

The top-1 logit of every predicted word, the logit of the class that a classifier chooses, a
regression's number, the cosine of two embeddings. Every prediction is explained by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.lrp.ledger import Ledger
from headcount.lrp.propagate import Tracing
from headcount.lrp.readout import Words, words_read
from headcount.subject import Subject
from headcount.tasks.forward import forward, logits_of
from headcount.tasks.head_task import HeadTask
from headcount.tasks.lm import LanguageModelling
from headcount.tasks.mlm import MaskedLanguageModelling
from headcount.tasks.similarity import Similarity, embed
from headcount.tasks.task import Task
from headcount.tasks.token_loss import IGNORED, labels_of
from headcount.tasks.translation import Translation
from headcount.text.batch import Batch

__all__ = ["Explain", "Per", "Start", "check_per", "explained", "explaining"]

Per = Literal["step", "sentence"]

#: What is explained, by the kind of task.
EXPLAINED = {
    "translation": "the top-1 logit of every target token, given the reference before it",
    "lm": "the top-1 logit of every next token",
    "mlm": "the top-1 logit of every hidden token",
    "classification": "the logit of the class that the model chooses",
    "regression": "the number that the model gives",
    "similarity": "the cosine of the two embeddings, half to each text",
}


@dataclass(frozen=True)
class Start:
    """Where relevance starts in one forward.

    `starts` is `[start, row, ...]` over an output `[row, ...]`; `counted` says which of them are
    predictions, `[start, row]`. `rows` of one example lie side by side.
    """

    output: Tensor
    starts: Tensor
    counted: Tensor
    ledger: Ledger
    rows: int = 1

    def together(self) -> Start:
        """All predictions of a row in one start."""
        whole = self.starts.sum(dim=0, keepdim=True)
        return replace(self, starts=whole, counted=self.counted.any(dim=0, keepdim=True))


#: Runs a batch under a tracing, and says where its relevance starts.
Explain = Callable[[Tracing, Batch], Start]


def check_per(per: str) -> Per:
    """A word that says what one backward explains."""
    for known in get_args(Per):
        if per == known:
            return known
    raise UsageError(
        f"per is '{per}'; choose step, one backward a prediction, or sentence, one backward from "
        "the sum of a text's predictions."
    )


def explained(task: Task) -> str:
    """What is explained in a task, in words."""
    if task.kind not in EXPLAINED:
        raise UsageError(
            f"A {task.kind} task has no prediction that relevance could start from; give a task of "
            f"the kinds {', '.join(EXPLAINED)}."
        )
    return EXPLAINED[task.kind]


@contextmanager
def explaining(subject: Subject, task: Task) -> Iterator[Explain]:
    """How the predictions of a task are explained, within the block."""
    if isinstance(task, Translation | LanguageModelling | MaskedLanguageModelling):
        with words_read(subject) as words:
            yield lambda tracing, batch: _words(tracing, batch, words)
    elif isinstance(task, Similarity):
        yield _cosines
    elif isinstance(task, HeadTask):
        yield lambda tracing, batch: _logits(tracing, batch, task)
    else:
        raise UsageError(explained(task))


def _words(tracing: Tracing, batch: Batch, words: Words) -> Start:
    """One start for each labelled place of a row."""

    def run() -> Tensor:
        logits = forward(tracing.subject, batch).logits
        top = logits.argmax(dim=-1).gather(1, places)
        return words.logits_at(places, top, tracing.rule, tracing.ledger)

    labels = labels_of(batch, torch.empty(0, device=tracing.subject.device))
    places, there = _places(labels != IGNORED)
    output, ledger = tracing.forward(run, len(batch))
    each = torch.eye(places.shape[1], dtype=output.dtype, device=output.device)[:, None]
    return Start(output, each * there.to(output.dtype), there.T, ledger)


def _places(predicted: Tensor) -> tuple[Tensor, Tensor]:
    """The predicted places of each row one after another, `[row, place]`, and which are there.

    >>> places, there = _places(torch.tensor([[False, True, True], [True, False, False]]))
    >>> places.tolist(), there.tolist()
    ([[1, 2], [0, 1]], [[True, True], [True, False]])
    """
    counts = predicted.sum(dim=1, keepdim=True)
    order = predicted.long().argsort(dim=1, descending=True, stable=True)
    there = torch.arange(int(counts.max()), device=counts.device) < counts
    return order[:, : there.shape[1]], there


def _logits(tracing: Tracing, batch: Batch, task: HeadTask) -> Start:
    """One start a row: the class that is chosen, or the number."""
    subject = tracing.subject
    output, ledger = tracing.forward(
        lambda: logits_of(subject, batch, axes=2, needs=task.needs), len(batch)
    )
    chosen = torch.nn.functional.one_hot(output.argmax(dim=1), output.shape[1])
    return Start(output, chosen[None].to(output.dtype), _all(len(batch), output), ledger)


def _cosines(tracing: Tracing, batch: Batch) -> Start:
    """One start a pair: the terms of the cosine, half to each side."""
    output, ledger = tracing.forward(lambda: embed(tracing.subject, batch), 2 * len(batch))
    pairs = output.detach().unflatten(0, (-1, 2))
    unit = pairs / pairs.norm(dim=-1, keepdim=True)
    terms = (unit.prod(dim=1, keepdim=True) / 2).expand_as(pairs).flatten(0, 1)
    return Start(output, terms[None], _all(2 * len(batch), output), ledger, rows=2)


def _all(rows: int, beside: Tensor) -> Tensor:
    return torch.ones(1, rows, dtype=torch.bool, device=beside.device)
