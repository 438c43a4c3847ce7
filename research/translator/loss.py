"""What is minimised: smoothed cross-entropy, and how far two dropout passes disagree."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from .corpus import IGNORED

__all__ = ["cross_entropy", "distilled_loss", "smoothed_loss", "summed_loss"]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood in nats, summed over the real target tokens."""
    flat = logits.float().view(-1, logits.shape[-1])
    return functional.cross_entropy(flat, labels.reshape(-1), ignore_index=IGNORED, reduction="sum")


def smoothed_loss(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Label-smoothed and plain cross-entropy (Szegedy et al. 2016, section 7), both summed."""
    scores = logits.float()
    total = scores.logsumexp(-1)
    real = labels != IGNORED
    right = scores.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    plain = total - right
    smooth = (1 - smoothing) * plain + smoothing * (total - scores.mean(-1))
    return (smooth * real).sum(), (plain * real).sum().detach()


def summed_loss(
    logits: Tensor, labels: Tensor, smoothing: float, agreement: float
) -> tuple[Tensor, Tensor]:
    """The loss of a batch and its plain cross-entropy, summed over real target tokens.

    With agreement the batch is there twice, one half under the other, and the symmetric
    divergence of the two passes is added (R-Drop: Liang et al. 2021, eq. 3 and 4).
    """
    if not agreement:
        return smoothed_loss(logits, labels, smoothing)
    smooth, plain = smoothed_loss(logits, labels, smoothing)
    first, second = logits.float().log_softmax(-1).chunk(2)
    apart = ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2
    real = labels.chunk(2)[0] != IGNORED
    return smooth / 2 + agreement * (apart * real).sum() / 2, plain / 2


def distilled_loss(
    logits: Tensor, taught: Tensor, labels: Tensor, smoothing: float, share: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss, with a share of it from a teacher's predictions, and the plain one.

    The teacher's part is the cross-entropy of its distribution (Hinton et al. 2015, temperature 1).
    """
    smooth, plain = smoothed_loss(logits, labels, smoothing)
    apart = -(taught.float().softmax(-1) * logits.float().log_softmax(-1)).sum(-1)
    real = labels != IGNORED
    return (1 - share) * smooth + share * (apart * real).sum(), plain
