"""Ablation importance: how much a task loses without a head.

Michel et al., NeurIPS 2019, sections 3.2 and 3.3 (one head, all but one); Kovaleva et al., EMNLP
2019, section 4.5 (uniform attention, whole layers). Here by default on the teacher-forced loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from headcount import plugins
from headcount.errors import StatsError, UsageError
from headcount.importance.examples import GROUP, Interrupted, Score, ScoreOptions, origin
from headcount.importance.sweeps.interventions import (
    Intervention,
    Mode,
    others,
    single_heads,
    whole_layers,
)
from headcount.importance.sweeps.sweeping import Measured, Sweep, SweepInterrupted, sweep
from headcount.models import Anatomy, Subject
from headcount.records import Column, Engine, EngineOptions, HeadTable, Journal
from headcount.stats import Floats, benjamini_hochberg
from headcount.tasks import Task

# --- What interventions cost --------------------------------------------------------------------


class AblationCosts(NamedTuple):
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


def ablation_costs(sweep: Sweep, *, seed: int = 0) -> AblationCosts:
    """Costs against the model as it is, on the same resamples.

    Where examples are too few for a test of so many interventions, costs stand alone.
    """
    # Without a score of the model as it is, nothing can be said of its heads.
    if np.isnan(sweep.baseline.value):
        reason = sweep.baseline.metric.reason(sweep.baseline.statistics)
        raise StatsError(
            f"The {sweep.baseline.name} of the model as it is cannot be told on {sweep.task.name}: "
            f"{reason}; use another metric, such as metric='loss', or more examples."
        )
    notes = _notes(sweep)
    try:
        found = sweep.losses(seed=seed)
    except StatsError as error:
        none = np.full(len(sweep), np.nan)
        told = (*notes, f"not tested: {error}")
        return AblationCosts(np.array(sweep.costs()), none, none, none, none, none, told)
    value, low, high, p, adjusted = found[:5]
    return AblationCosts(value, low, high, p, adjusted, benjamini_hochberg(p), notes)


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


# --- Ablation importance: how much worse a task goes without a head -----------------------------

Unit = Literal["head", "others", "layer"]
UNITS: tuple[str, ...] = get_args(Unit)

_P = "The p value of {}, {}."

#: Column, what it means, which way ranks first, and the interventions behind it.
_Row = tuple[
    str, str, Literal["higher", "lower"] | None, Callable[[Anatomy, Mode], list[Intervention]]
]
_BY_UNIT: dict[str, _Row] = {
    "head": ("ablation", "How much worse the task goes without the head.", "higher", single_heads),
    "others": (
        "ablation_others",
        "How much worse the task goes when the head is the only one left in its layer.",
        "lower",
        others,
    ),
    "layer": (
        "ablation_layer",
        "How much worse the task goes without any head of the layer.",
        None,
        whole_layers,
    ),
}


def ablation(
    subject: Subject,
    task: Task,
    *,
    mode: Mode = "zero",
    unit: Unit = "head",
    metric: Measured | None = None,
    reference: Task | None = None,
    batch_size: int = 16,
    seed: int = 0,
    journal: Journal | None = None,
    fast: bool = True,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Score every head by what its ablation costs, tested on paired examples.

    `unit` is one "head" at a time (column `ablation`), the "others" of its layer
    (`ablation_others`, with the best single head of every layer among the details), or the whole
    "layer" (`ablation_layer`). The cost is more loss, or less of the task's own metric. Columns
    `..._p`, `..._p_adjusted` (Holm over all heads; claims go by it) and `..._p_bh`
    (Benjamini-Hochberg) come along. All else is as in `sweeps.sweep`; Ctrl-C raises `Interrupted`
    with the table of the examples done.

    >>> from headcount import tasks
    >>> from headcount.models.loading import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> table = ablation(load("translator", device="cpu"), task)
    >>> table.names
    ['ablation', 'ablation_p', 'ablation_p_adjusted', 'ablation_p_bh']
    """
    if unit not in UNITS:
        raise UsageError(f"The unit of ablation is '{unit}'; choose head, others or layer.")
    settings: dict[str, Any] = {"mode": mode, "unit": unit, "batch_size": batch_size}
    try:
        found = sweep(
            subject,
            task,
            _BY_UNIT[unit][3](subject.anatomy, mode),
            metric=metric,
            batch_size=batch_size,
            reference=reference,
            seed=seed,
            journal=journal,
            name="ablation",
            fast=fast,
            engine=engine,
        )
    except SweepInterrupted as stop:
        raise Interrupted(_table(subject, stop.sweep, settings, seed)) from None
    return _table(subject, found, settings, seed)


def _table(subject: Subject, found: Sweep, settings: dict[str, Any], seed: int) -> HeadTable:
    """Costs as columns of all heads."""
    costs = ablation_costs(found, seed=seed)
    name = _BY_UNIT[settings["unit"]][0]
    rows = list(range(len(subject.heads)))  # the intervention in each head's row
    if settings["unit"] == "layer":
        layer = {head: row for row, one in enumerate(found.interventions) for head in one.heads}
        rows = [layer[head] for head in subject.heads]
    details = {}
    best = plugins.part("best single heads") if settings["unit"] == "others" else None
    if best is not None:
        details["best_single_heads"] = best(found, subject.heads, seed=seed)
    values = {name: costs.value, f"{name}_p": costs.p}
    values |= {f"{name}_p_adjusted": costs.p_adjusted, f"{name}_p_bh": costs.p_bh}
    spread = {key: np.asarray(value)[rows] for key, value in values.items()}
    told = {"metric": found.baseline.name, "baseline": found.baseline.value, "fast": found.fast}
    return HeadTable.of(
        subject.heads,
        spread,
        _columns(settings["unit"], found),
        low={name: costs.low[rows]},
        high={name: costs.high[rows]},
        notes={name: "; ".join(costs.notes)} if costs.notes else {},
        provenance=origin(
            subject, found.task, seed=seed, settings=settings | told, remarks=found.notes
        ),
        details=details,
    )


def _columns(unit: str, found: Sweep) -> list[Column]:
    name, meaning, direction, _ = _BY_UNIT[unit]
    shared: dict[str, Any] = {"group": GROUP, "paper": "Michel et al. 2019, section 3"}
    corrected = {"p": "uncorrected", "p_adjusted": "after Holm", "p_bh": "after Benjamini-Hochberg"}
    cost = Column(
        name,
        meaning=meaning,
        unit=found.baseline.name,
        direction=direction,
        more="more important" if direction == "higher" else "worse",
        format="+.3g",
        diverging=True,
        **shared,
    )
    tests = [
        Column(f"{name}_{kind}", meaning=_P.format(name, how), range=(0, 1), format=".2g", **shared)
        for kind, how in corrected.items()
    ]
    return [cost, *tests]


class AblationScore(Score):
    """Ablation among the scores of the registry; a column for each unit."""

    column = Column("ablation", meaning=_BY_UNIT["head"][1])
    takes = ("mode", "unit", "metric")

    def filled(self, own: Mapping[str, Any]) -> str:
        """One column for heads, others for other units."""
        unit = own.get("unit") or "head"
        return "ablation" if unit == "head" else f"ablation_{unit}"

    def compute(self, subject: Subject, task: Task, options: ScoreOptions) -> HeadTable:
        """See `ablation`."""
        shared = options.shared("batch_size", "journal", "engine")
        return ablation(subject, task, seed=options.seed or 0, **shared)
