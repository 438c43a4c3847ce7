"""Train a probe by cross-entropy over the candidates of each word (Clark et al., section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.probes.adam import Adam
from headcount.probes.batch import ProbeBatch, batch_of, in_order, shuffled
from headcount.probes.example import UNKNOWN, Example
from headcount.probes.scorer import Scorer
from headcount.probes.settings import Settings
from headcount.progress import Progress

__all__ = ["allowed", "loss_of", "train"]


def train(
    scorer: Scorer,
    examples: Sequence[Example],
    settings: Settings,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Train in place, on the device where the scorer is."""
    weights = list(scorer.parameters())
    adam, device = Adam(weights, settings.rate), weights[0].device
    total, done = settings.epochs * len(examples), 0
    for epoch in range(settings.epochs):
        if settings.as_authors:
            groups = in_order(examples, settings.batch)
        else:
            groups = shuffled(examples, settings.batch, seed=1000 * seed + epoch)
        for group in groups:
            loss_of(scorer, batch_of(group, device)).backward()
            adam.update(1.0 if settings.as_authors else 1 - done / total)
            done += len(group)
            if progress is not None:
                progress(done, total)


def loss_of(scorer: Scorer, batch: ProbeBatch) -> Tensor:
    """The cross-entropy, summed over the words of a sentence, averaged over sentences."""
    scores = allowed(scorer(batch), batch)
    summed = cross_entropy(
        scores.flatten(0, 1), batch.heads.flatten(), ignore_index=UNKNOWN, reduction="sum"
    )
    return summed / len(batch.sizes)


def allowed(scores: Tensor, batch: ProbeBatch) -> Tensor:
    """Scores with padding out of the running."""
    return scores.masked_fill(~batch.candidates[:, None], -torch.inf)
