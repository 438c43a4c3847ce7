"""Any sets of heads ablated, a row each: layers, stacks, the heads of a role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.importance.costs import costs_of
from headcount.subject import Subject
from headcount.sweeps import Mode, Sweep, sets, sweep
from headcount.tasks.task import Task

__all__ = ["cost_frame", "set_costs"]


def set_costs(
    subject: Subject,
    task: Task,
    named: Mapping[str, str | Iterable[str | Head]],
    *,
    mode: Mode = "zero",
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """What every set costs when its heads are ablated together, tested and corrected over sets.

    `options` are those of `sweeps.sweep`: metric, batch_size, journal and so on. The frame has
    set, heads (how many), value (of the metric), cost, low, high, p, p_adjusted and p_bh.
    """
    found = sweep(subject, task, sets(named, mode), seed=seed, **options)
    return cost_frame(found, seed=seed)


def cost_frame(found: Sweep, *, seed: int = 0) -> pd.DataFrame:
    """One row for each intervention of a sweep."""
    costs = costs_of(found, seed=seed)
    return pd.DataFrame(
        {
            "set": [one.name for one in found.interventions],
            "heads": [len(one.heads) for one in found.interventions],
            "value": [outcome.value for outcome in found.outcomes],
            "cost": costs.value,
            "low": costs.low,
            "high": costs.high,
            "p": costs.p,
            "p_adjusted": costs.p_adjusted,
            "p_bh": costs.p_bh,
        }
    )
