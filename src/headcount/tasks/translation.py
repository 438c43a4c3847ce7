"""Translation: an encoder-decoder's own output judged by sacreBLEU, or its loss on references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.beam import translate
from headcount.tasks.bleu import bleu_counts, bleu_metric
from headcount.tasks.chrf import chrf_counts, chrf_metric
from headcount.tasks.forward import logits_of, refuse
from headcount.tasks.metric import Metric, choose_metric
from headcount.tasks.reading import Column, read_pairs
from headcount.tasks.sheet import Marks
from headcount.tasks.task import Task
from headcount.tasks.token_loss import LOSS, labels_of, loss_marks, row_losses
from headcount.text.batch import Batch
from headcount.text.encode import Encoded

__all__ = ["Translation", "translation"]

_NEEDS = (
    "translation needs an encoder-decoder with a language-modelling head, such as MarianMTModel or "
    "T5ForConditionalGeneration"
)


@dataclass(frozen=True, repr=False)
class Translation(Task):
    """Sources with reference translations."""

    kind: ClassVar[str] = "translation"

    beams: int = 4
    #: The longest output; None for twice the source and 16 tokens.
    max_new_tokens: int | None = None
    #: As the model has it where None.
    length_penalty: float | None = None
    #: sacreBLEU's tokenizer; None for 13a.
    tokenize: str | None = None

    @property
    def generates(self) -> bool:
        """BLEU and chrF are of translations; the loss is of the reference."""
        return self.metric.name != "loss"

    def check(self, subject: Subject) -> None:
        """Raise unless the model is an encoder-decoder that can speak."""
        if not subject.inner.config.is_encoder_decoder or not subject.inner.can_generate():
            raise refuse(subject, _NEEDS)

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Sources and targets, longest sources first; labels are in."""
        return self.encoded(self.examples, subject, batch_size)

    def answer(self, subject: Subject, batch: Batch) -> Any:
        """Translations by beam search; for the loss, logits on the reference."""
        if self.metric.name == "loss":
            return logits_of(subject, batch, axes=3, needs=_NEEDS)
        return translate(
            subject,
            batch,
            beams=self.beams,
            max_new_tokens=self.max_new_tokens,
            length_penalty=self.length_penalty,
        )

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Nats of each reference, summed over its tokens and its end: ``[example]``."""
        logits = logits_of(subject, batch, axes=3, needs=_NEEDS)
        return row_losses(logits, labels_of(batch, logits))

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Loss and tokens, or what the metric counts in each translation."""
        if self.metric.name == "loss":
            return loss_marks(answer, labels_of(batch, answer))
        count = self._counter()
        references = [self.examples[number].target for number in batch.index]
        rows = [count(told, reference) for told, reference in zip(answer, references, strict=True)]
        return Marks(np.array(rows, dtype=np.float64), answer)

    def _counter(self) -> Callable[[str, str], list[float]]:
        if self.metric.name == "bleu":
            return partial(bleu_counts, tokenize=self.tokenize)
        return chrf_counts


def translation(
    examples: Any,
    metric: str = "bleu",
    *,
    beams: int = 4,
    max_new_tokens: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    source: Column = None,
    target: Column = None,
    header: bool | None = None,
) -> Translation:
    """A translation task from (source, target) pairs, or a file of them.

    `metric` is "bleu" or "chrf" of the model's own translations (beam search, judged as
    sacreBLEU does), or "loss": nats a token of the references. A .tsv needs no header; name
    columns (`source`, `target`) in a file that has one.

    >>> translation([("Rain fell.", "Regen fiel.")], metric="chrf")
    Translation('examples in hand', 1 examples, chrf)
    """
    known: dict[str, Callable[[], Metric]] = {
        "bleu": partial(bleu_metric, tokenize),
        "chrf": chrf_metric,
        "loss": lambda: LOSS,
    }
    chosen = choose_metric("translation", metric, known)()
    for name, number in (("beams", beams), ("max_new_tokens", max_new_tokens)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}; it must be 1 or more.")
    found = read_pairs(examples, columns=(source, target), header=header)
    return Translation(
        found.examples, chosen, found.name, beams, max_new_tokens, length_penalty, tokenize
    )
