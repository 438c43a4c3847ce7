"""The engineer's question: how many heads can go before more than so much quality is lost?

Steps of a nested order are tried one after the other on held-out examples. A step passes when
the upper confidence bound of its loss is within the limit, and the first that fails ends the
search: fixed-sequence testing (Maurer, Hothorn & Lehmacher 1995). So each test may use the whole
level, and the chance that the step taken loses more than the limit is at most 1 - confidence,
however many steps there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headcount.errors import UsageError
from headcount.pruning.curve import point_name
from headcount.pruning.order import Order
from headcount.pruning.points import point_of
from headcount.stats.paired_shares import paired_share_interval
from headcount.stats.resample import DRAWS
from headcount.stats.results import Floats
from headcount.sweeps import Sweep

__all__ = ["Found", "loss_bounds", "search"]

CONFIDENCE = 0.95


class Found(NamedTuple):
    """How far a search came."""

    #: The last step that passed; 0 where even the first lost too much.
    step: int
    #: The upper bound of the loss at each step, in the metric's own unit; higher is worse.
    bounds: Floats
    #: What was allowed, in the metric's own unit.
    limit: float


def search(
    found: Sweep,
    order: Order,
    max_loss: float,
    *,
    confidence: float = CONFIDENCE,
    draws: int = DRAWS,
    seed: int = 0,
) -> Found:
    """The last step of an order, tried in turn, whose loss is surely within `max_loss` points.

    The order must have been chosen on other examples than those of `found`.
    """
    if not max_loss >= 0:
        raise UsageError(f"The loss allowed is {max_loss:g} points; it must be 0 or more.")
    limit = max_loss * point_of(found.baseline.name)
    if not order.steps:  # steps so large that no head may go
        return Found(0, np.empty(0), limit)
    bounds = loss_bounds(_along(found, order), confidence=confidence, draws=draws, seed=seed)
    passed = bounds <= limit
    step = len(passed) if passed.all() else int(np.argmin(passed))
    return Found(step, bounds, limit)


def loss_bounds(
    found: Sweep, *, confidence: float = CONFIDENCE, draws: int = DRAWS, seed: int = 0
) -> Floats:
    """The one-sided upper confidence bound of what each intervention costs, uncorrected.

    From the paired bootstrap; for accuracy, where the bootstrap is too sure of few examples, from
    the adjusted Wald interval of Bonett & Price 2012.
    """
    both_sides = 2 * confidence - 1
    if found.baseline.metric.test == "mcnemar":
        right = np.stack([outcome.scores for outcome in found.outcomes], axis=1)
        interval = paired_share_interval(right, found.baseline.scores, confidence=both_sides)
        return -np.asarray(interval.low)
    compared = found.losses(confidence=both_sides, correction="none", draws=draws, seed=seed)
    # A metric that is undefined without these heads is as bad as it can be.
    return np.nan_to_num(np.asarray(compared.high), nan=np.inf)


def _along(found: Sweep, order: Order) -> Sweep:
    """The points of one order, in the order of its steps."""
    names = [one.name for one in found.interventions]
    return found.some([names.index(point_name(order, step)) for step in range(1, len(order) + 1)])
