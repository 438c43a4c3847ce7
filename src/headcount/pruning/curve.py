"""The quality of a model against the heads that are left, each point tested against the whole.

Michel et al., NeurIPS 2019, figure 3. Heads are switched off, not removed: that comes to the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from headcount.errors import StatsError
from headcount.importance import Intervention, Sweep, sets, sweep
from headcount.models import Subject
from headcount.pruning.order import Order
from headcount.pruning.tolerance import LEVEL, share_bound
from headcount.records import Column, Head, HeadTable, parse_heads, working
from headcount.stats import DRAWS, Floats, paired_share_interval
from headcount.tasks import Comparison, Outcome, Task, compare_outcomes


def measure_curve(
    subject: Subject,
    task: Task,
    orders: Sequence[Order],
    *,
    part: str,
    name: str = "curve",
    seed: int = 0,
    refit: Any = None,
    **options: Any,
) -> tuple[Sweep, pd.DataFrame, list[str]]:
    """The task after every step of every order: example by example, as a frame, and what to note.

    `name` is what a journal calls it; `options` are those of `importance.sweep`. With a `refit`
    (`hc.Refit`) what is left is refitted at every point.
    """
    points = {
        point_name(order, step): order.gone(step)
        for order in orders
        for step in range(1, len(order) + 1)
    }
    if refit is not None:
        kept = {key: options[key] for key in ("batch_size", "journal") if key in options}
        found: Sweep = refit.sweep(task, points, **kept)
    else:
        found = sweep(subject, task, sets(points), metric="task", name=name, seed=seed, **options)
    frame, notes = curve_frame(found, orders, subject, part=part, seed=seed)
    return found, frame, [*found.notes, *notes]


def held_out_curves(
    subject: Subject, judged: Sequence[tuple[Task, Sequence[Order]]], name: str, **options: Any
) -> tuple[list[pd.DataFrame], list[str]]:
    """A frame for each task that judges, along its own orders, and what to note.

    A journal calls each by `name` and its metric; `options` are those of `importance.sweep`.
    """
    frames, notes = [], list[str]()
    runs = [len(task) * (1 + sum(map(len, orders))) for task, orders in judged]
    with working(name.capitalize(), sum(runs)) as shown:
        for (task, orders), count in zip(judged, runs, strict=True):
            called = f"{name} {task.metric.name}"
            _, frame, more = measure_curve(
                subject, task, orders, part="held-out", name=called, **options
            )
            shown(count)
            frames.append(frame)
            notes += more
    return frames, notes


def point_name(order: Order, step: int) -> str:
    """What sweeps and journals call a point of the curve."""
    return f"{order.name} {order.scope} {step}"


def curve_frame(
    found: Sweep, orders: Sequence[Order], subject: Subject, *, part: str, seed: int = 0
) -> tuple[pd.DataFrame, list[str]]:
    """A row for every point, the whole model as step 0 of every order; and what to note.

    `delta` is the metric minus the whole model's, on the same examples; where they are too few for
    a test its interval and p are NA. `bound` is the most that is lost, as `loss_bounds` has it;
    `chance` what is reached without a look at the examples, NA where nobody knows.
    """
    against, notes = _compared(found, seed)
    bounds = loss_bounds(found, seed=seed)
    places = {one.name: place for place, one in enumerate(found.interventions)}
    chance = found.task.chance(subject)
    rows = []
    for order in orders:
        for step in range(len(order) + 1):
            delta: Sequence[Any] = (0.0, 0.0, 0.0, np.nan, np.nan)
            outcome, bound = found.baseline, 0.0
            if step:
                place = places[point_name(order, step)]
                outcome, delta = found.outcomes[place], against.one(place)[:5]
                bound = float(bounds[place])
            row = {
                "order": order.name,
                "scope": order.scope,
                "step": step,
                "heads_left": len(subject.heads) - len(order.gone(step)),
                "removed": ",".join(map(str, order.steps[step - 1])) if step else "",
                "metric": outcome.name,
                "more": "better" if outcome.higher_is_better else "worse",
            }
            row |= zip(("value", "low", "high"), outcome.interval(seed=seed), strict=True)
            columns = ("delta", "delta_low", "delta_high", "p", "p_adjusted")
            row |= zip(columns, delta, strict=True)
            row |= {"n": len(outcome), "part": part, "healed": False, "bound": bound}
            row["chance"] = np.nan if chance is None else chance
            rows.append(row)
    return pd.DataFrame(rows), notes


def trained_curve(
    subject: Subject,
    small: Subject,
    task: Task,
    order: Order,
    batch_size: int,
    seed: int,
    whole: Outcome | None = None,
) -> tuple[Sweep, pd.DataFrame, list[str]]:
    """The whole model and a trained one on the same examples, as a curve of one point."""
    whole = whole or task.evaluate(subject, batch_size=batch_size)
    points = [Intervention(order.gone(1), name=point_name(order, 1))] if order.steps else []
    outcomes = [task.evaluate(small, batch_size=batch_size) for _ in points]
    found = Sweep(task, tuple(points), whole, tuple(outcomes), len(task), fast=False)
    frame, notes = curve_frame(found, [order], subject, part="held-out", seed=seed)
    frame["healed"] = frame["step"] > 0  # its weights have learned
    return found, frame, notes


#: What a pruning run and a story add to the head table.
REMOVAL = Column(
    "removal_step",
    meaning="The step of the pruning curve at which the head goes.",
    paper="Michel et al. 2019, section 4",
    range=(1, None),
    more="goes later",
    group="Whether it can go",
    format=".0f",
)


def removal_table(curve: pd.DataFrame, heads: Sequence[Head]) -> HeadTable:
    """The step of the first order at which each head goes; NA where it stays to the end.

    An order of one stack alone, or at random, says nothing of the others and is passed over.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> curve = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...                       "removed": ["", "enc.0.1"]})
    >>> removal_table(curve, heads).frame["removal_step"].tolist()
    [nan, 1.0]
    """
    whole = curve[(curve["scope"] == "all") & ~curve["order"].str.startswith("random")]
    names = list(dict.fromkeys(whole["order"]))
    rows = whole[whole["order"].isin(names[:1])]
    if "metric" in rows:  # another metric may have judged the same order in fewer steps
        rows = rows[rows["metric"].isin(rows["metric"].iloc[:1])]
    steps = {
        head: float(step)
        for step, removed in zip(rows["step"], rows["removed"], strict=True)
        for head in parse_heads(str(removed))
    }
    note = f"by {names[0]}; NA: left at the last step" if names else "no order of all heads"
    values = {"removal_step": [steps.get(head, np.nan) for head in heads]}
    return HeadTable.of(heads, values, [REMOVAL], notes={"removal_step": note})


def _compared(found: Sweep, seed: int) -> tuple[Comparison, list[str]]:
    """Every point minus the whole model, tested where there are examples enough."""
    none = np.full(len(found), np.nan)
    value = np.array([one.value - found.baseline.value for one in found.outcomes])
    untested = Comparison(value, none, none, none, none, found.baseline.metric.test)
    if not found.outcomes:
        return untested, []
    try:
        return compare_outcomes(found.outcomes, found.baseline, seed=seed), []
    except StatsError as error:
        return untested, [f"The curve is not tested. {error}"]


# --- The most that is lost ----------------------------------------------------------------------


def loss_bounds(found: Sweep, *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """The one-sided upper 95% confidence bound of what each intervention costs, uncorrected.

    In the metric's own unit; higher is worse. For accuracy from the adjusted Wald interval of
    Bonett & Price 2012, which counts one answer more as won and one as lost; else from the paired
    bootstrap, widened by Student's t for few examples, and by the same two examples as far as
    examples did not change at all: few that are unchanged say little.
    """
    if not found.outcomes:
        return np.empty(0)
    scores = np.stack([outcome.scores for outcome in found.outcomes], axis=1)
    whole, n = found.baseline.scores, len(found.baseline)
    if found.baseline.metric.test == "mcnemar":
        return -np.asarray(paired_share_interval(scores, whole, confidence=2 * LEVEL - 1).low)
    costs = np.asarray(found.costs(), dtype=np.float64)
    high = np.full(len(costs), np.nan)
    with suppress(StatsError):  # too few examples for any test: no bound
        compared = found.losses(confidence=2 * LEVEL - 1, correction="none", draws=draws, seed=seed)
        high = np.asarray(compared.high)
    wider = stdtrit(max(n - 1, 1), LEVEL) / ndtri(LEVEL)
    bounds = costs + np.hypot((high - costs) * wider, _unseen(scores, whole) * share_bound(n))
    # A metric that is undefined without these heads is as bad as it can be.
    return np.nan_to_num(bounds, nan=np.inf)


def _unseen(scores: Floats, whole: Floats) -> Floats:
    """What an unchanged example might have changed: the share of these, times a usual change."""
    change = np.abs(np.nan_to_num(scores - whole[:, None]))
    changed = np.count_nonzero(change, axis=0)
    each = change.sum(axis=0) / np.maximum(changed, 1)
    return (1 - changed / len(whole)) * np.where(changed, each, each.max(initial=0.0))
