"""The loss whose gradient is asked for: the model's own where it has one, else what comes near.

Clark et al., BlackBoxNLP 2019, section 3.2 use BERT's masked-language-modelling loss. A bare
encoder has no such head left. What such models give is one vector a text, so the substitute
hides tokens in the same way and asks how far the vector moves from that of the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.lm import lm
from headcount.tasks.mlm import MaskedLanguageModelling, mlm
from headcount.tasks.similarity import embed
from headcount.tasks.token_loss import label_counts
from headcount.tasks.translation import translation
from headcount.text.batch import Batch

__all__ = ["MaskedEmbedding", "Objective", "loss_per_target", "objective_of"]


class Objective(Protocol):
    """What has batches and a differentiable loss for each of their rows; any task is one."""

    @property
    def kind(self) -> str:
        """What it is called, for the record."""

    def __len__(self) -> int: ...

    def batches(self, subject: Subject, batch_size: int = 16) -> Iterator[Batch]:
        """Batches with their labels."""

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The loss of each row, ``[row]``."""


@dataclass(frozen=True)
class MaskedEmbedding:
    """One minus the cosine of two mean-pooled vectors: of a text with some tokens hidden, and
    of the whole text, which is held fixed. Nothing hidden would give a gradient of 0.
    """

    hidden: MaskedLanguageModelling
    kind: str = "masked embedding"

    def __len__(self) -> int:
        return len(self.hidden)

    def batches(self, subject: Subject, batch_size: int = 16) -> Iterator[Batch]:
        """The batches of the masked-language-modelling task: the same tokens are hidden."""
        for batch in self.hidden.batches(subject, batch_size):
            yield replace(batch, labels=None)  # a row is one prediction: its vector

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """How far the vector of each row has moved, ``[row]``."""
        whole = replace(batch, inputs=batch.inputs | {"input_ids": batch.sides["source"].ids})
        with torch.no_grad():  # first, so that the graph's weights are those of the second forward
            wanted = embed(subject, whole)
        return 1 - cosine_similarity(embed(subject, batch), wanted)


def objective_of(subject: Subject, texts: Any) -> Objective:
    """The loss that a model can be asked for on plain texts, or pairs for an encoder-decoder.

    Masked-language modelling for an encoder with such a head, else `MaskedEmbedding`; the next
    token for a decoder; the reference translation for an encoder-decoder.
    """
    speaks = subject.inner.get_output_embeddings() is not None
    if subject.kind == "enc":
        hidden = mlm(texts)
        return hidden if speaks else MaskedEmbedding(hidden)
    if not speaks:
        raise UsageError(
            f"{subject.name} is of the class {type(subject.inner).__name__}, which predicts no "
            "tokens, so plain texts give no loss; pass a task, e.g. hc.tasks.classification(...)."
        )
    return lm(texts) if subject.kind == "dec" else translation(texts, metric="loss")


def loss_per_target(losses: Tensor, batch: Batch) -> Tensor:
    """Losses divided by the number of tokens that each row predicts, ``[row]``.

    So that a long text does not weigh more; where a row is one prediction nothing changes.
    """
    labels = batch.labels
    if labels is None or labels.dim() != 2 or labels.is_floating_point():
        return losses
    return losses / label_counts(labels).clamp_min(1).to(losses.device)
