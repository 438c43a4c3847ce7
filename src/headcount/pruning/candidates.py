"""Who may go: the units of some stacks, and what each of them is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.models.anatomy import Anatomy
from headcount.pruning.units import units_of

__all__ = ["Unit", "candidates", "check_stacks", "spared", "worth_of"]

#: Heads that go together or stay together; most often one.
Unit = tuple[Head, ...]


def candidates(anatomy: Anatomy, stacks: Iterable[str] | None = None) -> list[Unit]:
    """Everything in these stacks that can be cut out by itself, in the order of the model."""
    chosen = check_stacks(stacks, anatomy.stacks)
    return units_of(anatomy, [head for head in anatomy.heads if head.stack in chosen])


def check_stacks(stacks: Iterable[str] | None, there: Iterable[str]) -> list[str]:
    """The stacks to take heads from: those named, or all; each must be in the model.

    >>> check_stacks(["cross"], ["enc", "dec"])
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no stack 'cross' in this model; it has enc, dec.
    """
    known = list(there)
    wanted = known if stacks is None else list(dict.fromkeys(stacks))
    for stack in wanted:
        if stack not in known:
            raise UsageError(
                f"There is no stack '{stack}' in this model; it has {', '.join(known)}."
            )
    return wanted


def worth_of(units: Iterable[Unit], scores: Mapping[Head, float]) -> list[float]:
    """The importance of each unit: the sum of its heads'.

    >>> unit = (Head("dec", 0, 0), Head("dec", 0, 1))
    >>> worth_of([unit], {Head("dec", 0, 0): 1.0, Head("dec", 0, 1): 0.5})
    [1.5]
    """
    found = []
    for unit in units:
        lacking = [head for head in unit if not np.isfinite(scores.get(head, np.nan))]
        if lacking:
            raise UsageError(
                f"{lacking[0]} has no score, so nobody knows when its turn is; rank by another "
                "score, or prune only the stacks that have one (--stacks)."
            )
        found.append(float(sum(scores[head] for head in unit)))
    return found


def spared(units: Iterable[Unit], at_least: int, *, convention: str = "headcount") -> int:
    """How many heads stay for good where every layer keeps at least so many.

    The convention "code" has it as the authors' program, which takes layers for heads and heads
    for layers: of 6 layers with 12 heads it spares 12 instead of 6.

    >>> units = [(Head("enc", layer, head),) for layer in range(6) for head in range(12)]
    >>> spared(units, 1), spared(units, 1, convention="code")
    (6, 12)
    """
    layers = Counter(head[:2] for unit in units for head in unit)
    if convention == "code" and at_least:
        return at_least * max(layers.values(), default=0)
    return sum(min(at_least, heads) for heads in layers.values())
