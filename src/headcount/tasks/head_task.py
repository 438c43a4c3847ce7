"""What tasks with a head on top share: one text, or two, in; one row of logits out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from headcount.errors import ModelError, UsageError
from headcount.subject import Subject
from headcount.tasks.example import Labelled
from headcount.tasks.forward import logits_of, refuse
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.text.encode import Encoded
from headcount.text.sentence import Item, Pair, Sentence

__all__ = ["HeadTask"]


@dataclass(frozen=True, repr=False)
class HeadTask(Task):
    """Labelled texts for a model that gives one row of logits a text."""

    #: What a model must have, in words.
    needs: ClassVar[str]

    @abstractmethod
    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """What is right for each example of a batch, ``[example]``."""

    def check(self, subject: Subject) -> None:
        """Raise unless the model gives one row of logits a text, and several in a batch."""
        config = subject.inner.config
        bare = subject.inner.base_model is subject.inner
        if bare or subject.inner.get_output_embeddings() is not None:  # no head, or one for words
            raise refuse(subject, self.needs)
        if subject.kind == "dec" and config.pad_token_id is None:
            raise ModelError(
                f"{subject.name} has no padding token, so its head cannot find the last word of a "
                "text; set model.config.pad_token_id, e.g. to the id of the end token."
            )
        if subject.kind == "enc-dec" and self.examples[0].second is not None:
            raise UsageError(
                f"A {self.kind} task on {subject.name}, an encoder-decoder, takes single texts, "
                f"and {self.name} has pairs; join each pair into one text."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, or pairs of texts, longest first."""
        stacks = ("enc",) if subject.kind == "enc-dec" else None
        items = [_item(example) for example in self.examples]
        return self.encoded(items, subject, batch_size, stacks=stacks)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with what is right as its labels, ``[example]``."""
        # The head of an encoder-decoder starts the decoder with the whole text by itself.
        inputs = {
            name: tensor for name, tensor in batch.inputs.items() if not name.startswith("decoder_")
        }
        return replace(batch, inputs=inputs, labels=self.gold(batch, subject))

    def logits(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits, ``[example, class]``, in float32."""
        return logits_of(subject, batch, axes=2, needs=self.needs).float()


def _item(example: Labelled) -> Item:
    if example.second is None:
        return Sentence(example.text, line=example.line)
    return Pair(example.text, example.second, example.line)
