"""What a pruning is to reach: a number of heads left, a share gone, or a loss that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headcount.errors import UsageError

if TYPE_CHECKING:  # a goal is read before anything heavy is loaded
    from headcount.pruning.candidates import Unit
    from headcount.pruning.order import Order

__all__ = ["Goal", "check_reached", "read_goal", "step_of"]


@dataclass(frozen=True)
class Goal:
    """One aim; the others are None.

    >>> Goal(drop_share=0.5).removed(144), Goal(keep=10).removed(48)
    (72, 38)
    """

    max_loss: float | None = None
    keep: int | None = None
    drop_share: float | None = None

    def removed(self, total: int) -> int | None:
        """How many of the heads that may go are to go; None where the loss decides."""
        if self.keep is not None:
            return self._of_keep(total, self.keep)
        if self.drop_share is not None:
            return int(round(total * self.drop_share, 6))
        return None

    def _of_keep(self, total: int, keep: int) -> int:
        if keep >= total:
            raise UsageError(
                f"{keep} heads are to be kept, and there are {total} to choose from; keep fewer."
            )
        return total - keep

    def __str__(self) -> str:
        if self.max_loss is not None:
            return f"at most {self.max_loss:g} points lost"
        if self.keep is not None:
            return f"{self.keep} heads kept"
        return "the curve alone" if self.drop_share is None else f"{self.drop_share:g} of all gone"


def read_goal(max_loss: float | None, keep: int | None, drop_share: float | None) -> Goal:
    """The goal, if it makes sense; without any, the curve alone is wanted."""
    given = [value for value in (max_loss, keep, drop_share) if value is not None]
    if len(given) > 1:
        raise UsageError(
            "More than one goal was given; choose one of max_loss, keep and drop_share."
        )
    if max_loss is not None and not 0 <= max_loss < float("inf"):
        raise UsageError(f"The loss allowed is {max_loss:g} points; it must be 0 or more.")
    if keep is not None and keep < 1:
        raise UsageError(f"{keep} heads are to be kept; keep 1 or more.")
    if drop_share is not None and not 0 < drop_share < 1:
        raise UsageError(
            f"The share to drop is {drop_share:g}; it must be above 0 and below 1, e.g. 0.5."
        )
    return Goal(max_loss, keep, drop_share)


def step_of(goal: Goal, units: Sequence[Unit], order: Order) -> int:
    """The last step of an order that takes no more heads than the goal asks for."""
    wanted = goal.removed(sum(map(len, units))) or 0
    steps = range(1, len(order) + 1)
    return max((step for step in steps if len(order.gone(step)) <= wanted), default=0)


def check_reached(goal: Goal, units: Sequence[Unit], order: Order, at_least: int) -> None:
    """Raise where an order ends before the goal, because layers must keep heads."""
    wanted = goal.removed(sum(map(len, units))) or 0
    gone = len(order.gone(step_of(goal, units, order)))
    if wanted - gone >= max(map(len, units)):
        raise UsageError(
            f"{wanted} heads are to go, but no more than {gone} can while every layer keeps at "
            f"least {at_least}; remove fewer, or lower at_least (--at-least)."
        )
