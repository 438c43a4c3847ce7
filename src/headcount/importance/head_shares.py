"""Relevance of heads as shares of their layer, one prediction at a time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headcount.errors import ModelError
from headcount.importance.by_batch import Arrays
from headcount.importance.predictions import Start
from headcount.lrp.propagate import Relevance
from headcount.models.anatomy import Anatomy
from headcount.models.finite import check_finite
from headcount.subject import Subject

__all__ = ["head_shares", "shares_of_layers"]


def head_shares(subject: Subject, relevance: Relevance, start: Start) -> Arrays:
    """What every example of a batch adds: summed shares and their number, `[example, head]`.

    A layer that no relevance reached in some prediction (a decoder that only starts) is not
    counted there.
    """
    heads = relevance.heads.double().unflatten(1, (-1, start.rows)).sum(dim=2)
    if not bool(heads.isfinite().all()):
        check_finite(subject)
        raise ModelError(
            f"The relevance of the heads of {subject.name} is not a number, although all weights "
            f"are; {str(subject.dtype).removeprefix('torch.')} may be too narrow: use --dtype "
            "float32 (dtype='float32')."
        )
    counted = start.counted.unflatten(1, (-1, start.rows))[:, :, 0, None]
    shares, reached = shares_of_layers(heads, subject.anatomy)
    both = counted & reached
    return {
        "shares": _array((shares * both).sum(dim=0)),
        "counts": _array(both.sum(dim=0)),
    }


def shares_of_layers(heads: Tensor, anatomy: Anatomy) -> tuple[Tensor, Tensor]:
    """|R| of each head over the sum of |R| in its layer, `[..., head]`, and where that is not 0."""
    shares, reached = torch.zeros_like(heads), torch.zeros_like(heads, dtype=torch.bool)
    for span in anatomy.spans.values():
        sizes = heads[..., span].abs()
        total = sizes.sum(dim=-1, keepdim=True)
        shares[..., span] = sizes / total.where(total > 0, 1.0)
        reached[..., span] = total > 0
    return shares, reached


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.double().cpu().numpy()
