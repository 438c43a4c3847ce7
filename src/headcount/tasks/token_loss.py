"""The loss of predicted tokens: cross-entropy in nats, summed over each row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.stats.results import Floats
from headcount.stats.statistic import ratio
from headcount.tasks.metric import Metric
from headcount.tasks.sheet import Marks
from headcount.text.batch import Batch

__all__ = [
    "IGNORED",
    "LOSS",
    "MEAN_LOSS",
    "PERPLEXITY",
    "label_counts",
    "labels_of",
    "loss_marks",
    "row_losses",
]

#: The label of a place where nothing is to be predicted.
IGNORED = -100


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The summed loss of each row, ``[row, token, word]`` and ``[row, token]`` to ``[row]``.

    Summed, not averaged: then the gradient of one row does not depend on its neighbours.

    >>> row_losses(torch.zeros(1, 3, 4), torch.tensor([[2, 0, IGNORED]])).exp().round()
    tensor([16.])
    """
    flat = logits.float().flatten(0, 1)
    losses = cross_entropy(flat, labels.flatten(), ignore_index=IGNORED, reduction="none")
    return losses.view_as(labels).sum(dim=-1)


def label_counts(labels: Tensor) -> Tensor:
    """How many places of each row are to be predicted, ``[row]``."""
    return (labels != IGNORED).sum(dim=-1)


def labels_of(batch: Batch, like: Tensor) -> Tensor:
    """A batch's labels, beside the logits."""
    assert batch.labels is not None  # a task's own batches have labels
    return batch.labels.to(like.device)


def loss_marks(logits: Tensor, labels: Tensor) -> Marks:
    """The summed loss and the number of labels of each row."""
    both = torch.stack([row_losses(logits, labels), label_counts(labels).float()], dim=1)
    return Marks(both.cpu().double().numpy(), [])


def _perplexity(sums: Floats) -> Floats:
    with np.errstate(over="ignore"):  # a broken model may well be infinitely perplexed
        return np.exp(ratio(sums))


#: Nats a token, over all tokens of all examples.
LOSS = Metric("loss", ("loss", "tokens"), ratio, higher_is_better=False, test="sign-flip")
PERPLEXITY = Metric(
    "perplexity", ("loss", "tokens"), _perplexity, higher_is_better=False, test="sign-flip"
)
#: The mean loss of an example, where an example is one prediction.
MEAN_LOSS = Metric("loss", ("loss", "examples"), ratio, higher_is_better=False, test="sign-flip")
