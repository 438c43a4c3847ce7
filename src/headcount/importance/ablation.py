"""Ablation importance: how much worse a task goes without a head.

Michel et al., NeurIPS 2019, sections 3.2 and 3.3 (one head, all but one); Kovaleva et al., EMNLP
2019, section 4.5 (uniform attention, whole layers). Here by default on the teacher-forced loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.heads import Head
from headcount.importance.best_single_heads import best_single_heads
from headcount.importance.costs import costs_of
from headcount.importance.interrupted import Interrupted
from headcount.importance.origin import origin
from headcount.journal import Journal
from headcount.models.anatomy import Anatomy
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.sweeps import (
    Intervention,
    Mode,
    Sweep,
    SweepInterrupted,
    others,
    single_heads,
    sweep,
    whole_layers,
)
from headcount.sweeps.measure import Measured
from headcount.table import HeadTable
from headcount.tasks.task import Task

__all__ = ["UNITS", "Unit", "ablation"]

Unit = Literal["head", "others", "layer"]
UNITS: tuple[str, ...] = get_args(Unit)

_GROUP = "How much it matters"
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
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> HeadTable:
    """Score every head by what its ablation costs, tested on paired examples.

    `unit` is one "head" at a time (column `ablation`), the "others" of its layer
    (`ablation_others`, with the best single head of every layer among the details), or the whole
    "layer" (`ablation_layer`). The cost is more loss, or less of the task's own metric. Columns
    `..._p`, `..._p_adjusted` (Holm over all heads; claims go by it) and `..._p_bh`
    (Benjamini-Hochberg) come along. All else is as in `sweeps.sweep`; Ctrl-C raises `Interrupted`
    with the table of the examples done.

    >>> from headcount import tasks
    >>> from headcount.models.load import load
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
            progress=progress,
            announce=announce,
        )
    except SweepInterrupted as stop:
        raise Interrupted(_table(subject, stop.sweep, settings, seed)) from None
    return _table(subject, found, settings, seed)


def _table(subject: Subject, found: Sweep, settings: dict[str, Any], seed: int) -> HeadTable:
    """Costs as columns of all heads."""
    costs = costs_of(found, seed=seed)
    name = _BY_UNIT[settings["unit"]][0]
    rows = _rows(found.interventions, subject.heads, settings["unit"])
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
        details=_details(found, subject.heads, settings["unit"], seed),
    )


def _rows(interventions: Sequence[Intervention], heads: list[Head], unit: str) -> list[int]:
    """The intervention that stands in each head's row."""
    if unit != "layer":
        return list(range(len(heads)))
    of_head = {head: row for row, one in enumerate(interventions) for head in one.heads}
    return [of_head[head] for head in heads]


def _details(found: Sweep, heads: list[Head], unit: str, seed: int) -> dict[str, Any]:
    if unit != "others":
        return {}
    return {"best_single_heads": best_single_heads(found, heads, seed=seed)}


def _columns(unit: str, found: Sweep) -> list[Column]:
    name, meaning, direction, _ = _BY_UNIT[unit]
    shared: dict[str, Any] = {"group": _GROUP, "paper": "Michel et al. 2019, section 3"}
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
