"""What interventions cost, with intervals and corrected p values where the data allow them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headcount.errors import StatsError
from headcount.stats.corrections import benjamini_hochberg
from headcount.stats.results import Floats
from headcount.sweeps import Sweep

__all__ = ["Costs", "costs_of"]


class Costs(NamedTuple):
    """One number an intervention; higher is worse, whatever the metric."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats
    #: Holm: claims are made by this one.
    p_adjusted: Floats
    #: Benjamini and Hochberg: shown beside it.
    p_bh: Floats
    #: What a reader should know, e.g. why nothing was tested.
    notes: tuple[str, ...]


def costs_of(sweep: Sweep, *, seed: int = 0) -> Costs:
    """Costs against the model as it is, on the same resamples.

    Where examples are too few for a test of so many interventions, costs stand alone.
    """
    _check_baseline(sweep)
    notes = _notes(sweep)
    try:
        found = sweep.losses(seed=seed)
    except StatsError as error:
        none = np.full(len(sweep), np.nan)
        told = (*notes, f"not tested: {error}")
        return Costs(np.array(sweep.costs()), none, none, none, none, none, told)
    value, low, high, p, adjusted = found[:5]
    return Costs(value, low, high, p, adjusted, benjamini_hochberg(p), notes)


def _check_baseline(sweep: Sweep) -> None:
    """Without a score of the model as it is, nothing can be said of its heads."""
    if np.isnan(sweep.baseline.value):
        reason = sweep.baseline.metric.reason(sweep.baseline.statistics)
        raise StatsError(
            f"The {sweep.baseline.name} of the model as it is cannot be told on {sweep.task.name}: "
            f"{reason}; use another metric, such as metric='loss', or more examples."
        )


def _notes(sweep: Sweep) -> tuple[str, ...]:
    notes = []
    if not sweep.complete:
        done = len(sweep.baseline)
        notes.append(f"interrupted after {done:,} of {sweep.examples:,} examples")
    if not any(sweep.costs()):
        notes.append(
            f"nothing that was ablated changes the {sweep.baseline.name} "
            f"({sweep.baseline.value:.4g}), which may be too coarse or constant"
        )
    if any(np.isnan(sweep.costs())):
        notes.append(f"NA where the {sweep.baseline.name} is undefined after the ablation")
    return tuple(notes)
