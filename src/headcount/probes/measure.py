"""How good a probe is: the share of words whose head it finds (UAS), sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from headcount.probes.batch import batch_of, in_order
from headcount.probes.example import Example
from headcount.probes.scorer import Scorer
from headcount.probes.train import allowed
from headcount.stats import Interval, bootstrap_interval, ratio

__all__ = ["Choose", "choice_of", "hits", "right_branching", "uas"]

#: The head that each word of each example is given.
Choose = Callable[[Sequence[Example]], list[NDArray[np.int64]]]
_AT_ONCE = 32


def choice_of(scorer: Scorer) -> Choose:
    """Every word takes the candidate of the highest score, whether or not that makes a tree."""

    @torch.no_grad()
    def choose(examples: Sequence[Example]) -> list[NDArray[np.int64]]:
        device = next(scorer.parameters()).device
        found: list[NDArray[np.int64]] = []
        for group in in_order(examples, _AT_ONCE):
            batch = batch_of(group, device)
            best = allowed(scorer(batch), batch).argmax(-1).cpu().numpy()
            found += [row[: len(one)] for row, one in zip(best, group, strict=True)]
        return found

    return choose


def right_branching(convention: str) -> Choose:
    """Every word hangs from the next. The last hangs from ROOT; for the authors, from itself."""

    def choose(examples: Sequence[Example]) -> list[NDArray[np.int64]]:
        found = [np.arange(2, len(example) + 2) for example in examples]
        for heads in found:
            heads[-1] = 0 if convention == "headcount" else len(heads)
        return found

    return choose


def hits(choose: Choose, examples: Sequence[Example]) -> NDArray[np.int64]:
    """``[sentence, 2]``: words whose head was found, and words that count."""
    rows = []
    for example, heads in zip(examples, choose(examples), strict=True):
        right = (example.heads.numpy() == heads) & example.scored.numpy()
        rows.append((right.sum(), example.scored.sum().item()))
    return np.array(rows, dtype=np.int64)


def uas(found: NDArray[np.int64]) -> Interval:
    """The share, with an interval from resampled sentences; several seeds may be averaged first."""
    if len(found) > 1:
        return bootstrap_interval(found)
    unknown = np.array(np.nan)
    return Interval(ratio(found.sum(0, dtype=float)), unknown, unknown)
