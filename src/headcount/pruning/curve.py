"""The quality of a model against the heads that are left, each point tested against the whole.

Michel et al., NeurIPS 2019, figure 3. Heads are shut, not removed: that comes to the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import StatsError
from headcount.importance import Sweep, sets, sweep
from headcount.models import Subject
from headcount.pruning.order import Order
from headcount.records import Head
from headcount.tasks import Comparison, Task, compare_outcomes

# --- The quality of a model against the heads that are left -------------------------------------

#: What a row of the curve holds.
COLUMNS = (
    *("order", "scope", "step", "heads_left", "removed", "metric", "more", "value", "low", "high"),
    *("delta", "delta_low", "delta_high", "p", "p_adjusted", "n", "part", "healed"),
)


def curve_sweep(
    subject: Subject, task: Task, orders: Sequence[Order], *, name: str = "curve", **options: Any
) -> Sweep:
    """The task after every step of every order; `options` are those of `sweeps.sweep`."""
    named: Mapping[str, Sequence[Head]] = {
        point_name(order, step): order.gone(step)
        for order in orders
        for step in range(1, len(order) + 1)
    }
    return sweep(subject, task, sets(named), metric="task", name=name, **options)


def point_name(order: Order, step: int) -> str:
    """What sweeps and journals call a point of the curve."""
    return f"{order.name} {order.scope} {step}"


def curve_frame(
    found: Sweep, orders: Sequence[Order], *, heads: int, part: str = "all", seed: int = 0
) -> tuple[pd.DataFrame, list[str]]:
    """A row for every point, the whole model as step 0 of every order; and what to note.

    `heads` is how many the whole model has. `delta` is the metric minus the whole model's, on the
    same examples; where they are too few for a test its interval and p are NA.
    """
    against, notes = _compared(found, seed)
    rows = []
    for order in orders:
        rows.append(_whole(found, order, heads, seed))
        for step in range(1, len(order) + 1):
            rows.append(_row(found, order, step, heads, against, seed))
    shared = {"part": part, "healed": False, "n": len(found.baseline)}
    frame = pd.DataFrame([row | shared for row in rows], columns=list(COLUMNS))
    return frame, notes


def _compared(found: Sweep, seed: int) -> tuple[Comparison, list[str]]:
    if not found.outcomes:
        empty = np.empty(0)
        return Comparison(empty, empty, empty, empty, empty, found.baseline.metric.test), []
    try:
        return compare_outcomes(found.outcomes, found.baseline, seed=seed), []
    except StatsError as error:
        none = np.full(len(found), np.nan)
        value = np.array([one.value - found.baseline.value for one in found.outcomes])
        untested = Comparison(value, none, none, none, none, found.baseline.metric.test)
        return untested, [f"The curve is not tested. {error}"]


def _row(
    found: Sweep, order: Order, step: int, heads: int, against: Comparison, seed: int
) -> dict[str, Any]:
    names = [one.name for one in found.interventions]
    place = names.index(point_name(order, step))
    delta = against.one(place)
    value, low, high = found.outcomes[place].interval(seed=seed)
    return {
        **_named(found, order, step, heads),
        **{"value": value, "low": low, "high": high},
        **{"delta": delta.value, "delta_low": delta.low, "delta_high": delta.high},
        **{"p": delta.p, "p_adjusted": delta.p_adjusted},
    }


def _whole(found: Sweep, order: Order, heads: int, seed: int) -> dict[str, Any]:
    value, low, high = found.baseline.interval(seed=seed)
    return {
        **_named(found, order, 0, heads),
        **{"value": value, "low": low, "high": high},
        **{"delta": 0.0, "delta_low": 0.0, "delta_high": 0.0, "p": np.nan, "p_adjusted": np.nan},
    }


def _named(found: Sweep, order: Order, step: int, heads: int) -> dict[str, Any]:
    going = order.steps[step - 1] if step else ()
    return {
        "order": order.name,
        "scope": order.scope,
        "step": step,
        "heads_left": heads - len(order.gone(step)),
        "removed": ",".join(map(str, going)),
        "metric": found.baseline.name,
        "more": "better" if found.baseline.higher_is_better else "worse",
    }
