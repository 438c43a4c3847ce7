"""How many tokens a score per token is divided by, for every example and head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch

__all__ = ["michels_counts", "real_tokens", "token_counts"]


def real_tokens(stack: str, batch: Batch) -> Tensor:
    """Which positions of a stack's queries are tokens, `[row, query]`."""
    side = batch.query(stack)
    if side is None:
        raise UsageError(
            f"per='token' needs to know which positions of {stack} are tokens, and this task does "
            "not say; use per='example'."
        )
    return side.real


def token_counts(subject: Subject, batch: Batch) -> np.ndarray:
    """The tokens that ask in each head's stack, ``[example, head]``."""
    return _by_head(subject, batch, lambda site, real: real.sum(1))


def michels_counts(subject: Subject, batch: Batch) -> np.ndarray:
    """What Michel et al.'s programs divide by, ``[example, head]``.

    For a classifier the tokens, but 1 an example in the last layer, where [CLS] alone has a
    gradient; for a translator the source's tokens, and all positions of the decoder, also padded.
    """
    last = max(site.layer for site in subject.anatomy.sites if site.stack == "enc")

    def count(site: Site, real: Tensor) -> Tensor:
        if site.stack != "enc":
            return torch.full_like(real[:, 0], real.shape[1], dtype=torch.long)
        by_example = subject.kind == "enc" and site.layer == last
        return real.any(1).long() if by_example else real.sum(1)

    return _by_head(subject, batch, count)


def _by_head(subject: Subject, batch: Batch, count: Callable[[Site, Tensor], Tensor]) -> np.ndarray:
    """A count of each row, added up over the rows of an example, for every head of every site."""
    columns = []
    for site in subject.anatomy.sites:
        rows = count(site, real_tokens(site.stack, batch))
        examples = rows.view(len(batch), -1).sum(1)
        columns.append(examples[:, None].expand(-1, site.heads))
    return torch.cat(columns, dim=1).cpu().numpy()
