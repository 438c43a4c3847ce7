"""Sensitivity: what dies first when heads go one after another, least important first.

Michel et al., NeurIPS 2019, section 5 and figure 4: each attention type pruned on its own, by
share of its heads. The same by layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.importance import ablation_costs
from headcount.importance.sweeps.interventions import Intervention, Mode
from headcount.importance.sweeps.sweeping import sweep
from headcount.models.subject import Subject
from headcount.records.heads import Head, check_heads
from headcount.tasks.task import Task

__all__ = ["first_to_fall", "sensitivity"]

By = Literal["stack", "layer"]


def sensitivity(
    subject: Subject,
    task: Task,
    rank: Sequence[Head],
    *,
    by: By = "stack",
    steps: int = 10,
    mode: Mode = "zero",
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """A curve for every stack, or every layer: its heads ablated, the last of the rank first.

    `rank` is every head from the most to the least important, as `table.rank(column)` gives it.
    `options` are those of `sweeps.sweep`. The frame has stack, layer (NA by stack), removed,
    heads, share, value, cost, low, high, p and p_adjusted; p values are corrected over all of it.
    """
    groups = _groups(subject, rank, by)
    curves = {group: _cuts(len(heads), steps) for group, heads in groups.items()}
    interventions = [
        Intervention(heads[:count], mode, f"{_name(group)}, {count} of {len(heads)} gone")
        for group, heads in groups.items()
        for count in curves[group]
    ]
    found = sweep(subject, task, interventions, seed=seed, **options)
    costs = ablation_costs(found, seed=seed)
    where = [(group, len(groups[group])) for group in groups for _ in curves[group]]
    frame = pd.DataFrame(
        {
            "stack": [group[0] for group, _ in where],
            "layer": pd.Series([group[1] for group, _ in where], dtype="Int64"),
            "removed": [len(one.heads) for one in found.interventions],
            "heads": [count for _, count in where],
        }
    )
    frame["share"] = frame["removed"] / frame["heads"]
    frame["value"] = [outcome.value for outcome in found.outcomes]
    figures = {"cost": costs.value, "low": costs.low, "high": costs.high}
    frame = frame.assign(**figures, p=costs.p, p_adjusted=costs.p_adjusted)
    frame.attrs["baseline"] = found.baseline.value
    return frame


def first_to_fall(curves: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """What share of its heads every stack, or layer, can lose at a cost of up to `tolerance`.

    The most sensitive comes first. The curve is followed from its start: what lies behind the
    first step that costs more does not count.
    """
    rows = []
    for (stack, layer), curve in curves.groupby(["stack", "layer"], dropna=False, sort=False):
        ordered = curve.sort_values("removed")
        held = (ordered["cost"] <= tolerance).cumprod().astype(bool)
        kept = float(ordered.loc[held, "share"].max()) if held.any() else 0.0
        rows.append(
            {"stack": stack, "layer": layer, "share": kept, "cost": ordered["cost"].iloc[-1]}
        )
    frame = pd.DataFrame(rows).astype({"layer": "Int64"})
    return frame.sort_values(["share", "cost"], ascending=[True, False], ignore_index=True)


def _groups(
    subject: Subject, rank: Sequence[Head], by: str
) -> dict[tuple[str, int | None], list[Head]]:
    """Heads of every stack or layer, the least important first."""
    if by not in ("stack", "layer"):
        raise UsageError(f"Sensitivity is told by 'stack' or 'layer', not by {by!r}.")
    check_heads(rank, subject.heads)
    missing = [head for head in subject.heads if head not in set(rank)]
    if missing:
        raise UsageError(
            f"The rank has {len(set(rank))} of the model's {len(subject.heads)} heads and lacks "
            f"{missing[0]}; give all of them, the most important first."
        )
    place = {head: number for number, head in enumerate(rank)}
    groups: dict[tuple[str, int | None], list[Head]] = {}
    for head in subject.heads:
        groups.setdefault((head.stack, head.layer if by == "layer" else None), []).append(head)
    return {group: sorted(heads, key=lambda head: -place[head]) for group, heads in groups.items()}


def _cuts(heads: int, steps: int) -> list[int]:
    """How many heads are gone at each step, from one to all.

    >>> _cuts(8, 4), _cuts(3, 10)
    ([2, 4, 6, 8], [1, 2, 3])
    """
    if steps < 1:
        raise UsageError(f"A curve of {steps} steps shows nothing; ask for 1 or more.")
    counts = np.ceil(np.arange(1, steps + 1) * heads / steps).astype(int)
    return list(dict.fromkeys(counts.tolist()))


def _name(group: tuple[str, int | None]) -> str:
    return group[0] if group[1] is None else f"{group[0]}.{group[1]}"
