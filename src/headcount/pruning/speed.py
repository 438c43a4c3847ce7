"""One measured pair of speeds: the gain, what operations allow at most, and what ate the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headcount.pruning.costs import Costs
from headcount.stats.median import median_interval

__all__ = ["Leak", "Speed", "speed_of"]


@dataclass(frozen=True)
class Leak:
    """Why a forward is not as much faster as it has fewer operations; shares of the whole's time.

    `limit` is the time that should be saved if time went with operations alone, `saved` what was.
    `elsewhere` is what the limit takes for granted: part of the time multiplies no matrices, and
    matrices run at different rates. `slower` says for each part how much more it takes than its
    own operations would: smaller matrices keep a machine less busy.
    """

    limit: float
    saved: float
    elsewhere: float
    slower: dict[str, float]


@dataclass(frozen=True)
class Speed:
    """A whole and a pruned model in turns, at one batch size and one length."""

    batch: int
    length: int
    #: Medians, in seconds of one forward.
    whole: float
    small: float
    #: The median of the pairs' ratios less 1, with its interval: 0.15 is 15% more examples.
    gain: float
    low: float
    high: float
    #: The gain if time went with operations.
    limit: float
    pairs: int
    #: Seconds by part, from a run of their own with hooks; empty where they were not timed.
    whole_parts: dict[str, float]
    small_parts: dict[str, float]
    leak: Leak | None

    @property
    def throughput(self) -> tuple[float, float]:
        """Examples a second, whole and pruned."""
        return self.batch / self.whole, self.batch / self.small

    @property
    def reached(self) -> float:
        """The share of the limit that was measured; NaN where there is nothing to gain."""
        return self.gain / self.limit if self.limit > 0 else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        one, other = self.throughput
        derived = {"whole_per_second": one, "small_per_second": other, "reached": self.reached}
        return asdict(self) | derived


def speed_of(
    seconds: tuple[Sequence[float], Sequence[float]],
    costs: tuple[Costs, Costs],
    parts: Sequence[dict[str, float]] | None,
) -> Speed:
    """Sum up the pairs of one batch size and length."""
    whole, small = (np.asarray(times, dtype=np.float64) for times in seconds)
    gain, low, high = (float(number) - 1 for number in median_interval(whole / small))
    one, other = parts or ({}, {})
    return Speed(
        batch=costs[0].batch,
        length=costs[0].tokens,
        whole=float(np.median(whole)),
        small=float(np.median(small)),
        gain=gain,
        low=low,
        high=high,
        limit=costs[0].flops / costs[1].flops - 1,
        pairs=len(whole),
        whole_parts=one,
        small_parts=other,
        leak=_leak(costs, one, other) if parts else None,
    )


def _leak(costs: tuple[Costs, Costs], one: dict[str, float], other: dict[str, float]) -> Leak:
    """What is saved, against what operations promise, part by part.

    Every part of the whole model's time, shrunk as its own operations shrink, would give
    `expected`; the rest of the time, which has none, stays.
    """
    total = sum(one.values())
    before, after = (cost.parts for cost in costs)
    expected = {
        part: taken * (after[part] / before[part] if before.get(part) else 1.0)  # type: ignore[index,call-overload]
        for part, taken in one.items()
    }
    ideal = total * costs[1].flops / costs[0].flops
    return Leak(
        limit=(total - ideal) / total,
        saved=(total - sum(other.values())) / total,
        elsewhere=(sum(expected.values()) - ideal) / total,
        slower={part: (other[part] - expected[part]) / total for part in one},
    )
