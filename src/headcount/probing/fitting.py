"""Train a probe by cross-entropy over the candidates of each word (Clark et al., section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.probing.data import (
    UNKNOWN,
    ProbeBatch,
    ProbeExample,
    Settings,
    batch_of,
    example_batches,
    shuffled,
)
from headcount.probing.scorers import Scorer
from headcount.records import Progress

# --- Adam as TensorFlow computes it -------------------------------------------------------------
# Kingma & Ba 2015, the last lines of section 2: the bias is corrected in the step, and epsilon is
# added to the uncorrected root. torch.optim.Adam adds it to the corrected one; over a treebank that
# moves weights in the fourth decimal, which is what keeps it from matching Clark et al.'s program.


class Adam:
    """An optimiser of a few tensors.

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> adam = Adam([weight], rate=0.1)
    >>> (weight**2).sum().backward()
    >>> adam.update()
    >>> round(weight.item(), 4)
    0.9
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.weights = list(weights)
        self.rate, self.betas, self.epsilon = rate, betas, epsilon
        self._means = [torch.zeros_like(weight) for weight in self.weights]
        self._squares = [torch.zeros_like(weight) for weight in self.weights]
        self._updates = 0

    @torch.no_grad()
    def update(self, share: float = 1.0) -> None:
        """One step along the gradients, which are cleared; `share` makes it smaller."""
        self._updates += 1
        first, second = self.betas
        unbias = (1 - second**self._updates) ** 0.5 / (1 - first**self._updates)
        for weight, mean, square in zip(self.weights, self._means, self._squares, strict=True):
            if weight.grad is None:
                continue
            mean.mul_(first).add_(weight.grad, alpha=1 - first)
            square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
            weight.sub_(share * self.rate * unbias * mean / (square.sqrt() + self.epsilon))
            weight.grad = None


# --- Train a probe by cross-entropy over the candidates of each word (Clark et al. --------------


def train(
    scorer: Scorer,
    examples: Sequence[ProbeExample],
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
            groups = example_batches(examples, settings.batch)
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
