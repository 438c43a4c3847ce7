"""Rows of the curve from outcomes: the metric, and the paired difference from the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headcount.records.heads import Head
from headcount.stats import bootstrap_interval
from headcount.tasks import Outcome, compare_outcomes

from .points import Point

__all__ = ["curve_rows", "free", "packed", "unpacked", "within"]

LEVEL = 0.05


def curve_rows(
    points: Sequence[Point],
    outcomes: Sequence[Outcome],
    whole: Outcome,
    heads: Sequence[Head],
    *,
    healed: bool = False,
    trained: Outcome | None = None,
) -> list[dict[str, Any]]:
    """One row a point, as curve.parquet has them; healed ones also against the whole model healed.

    The p values are single ones: whoever goes down an order tests in a fixed sequence.
    """
    statistics = np.stack([outcome.statistics for outcome in outcomes], axis=1)
    assert whole.statistic is not None  # accuracy and loss are ratios of sums
    values = bootstrap_interval(statistics, whole.statistic)
    told = compare_outcomes(outcomes, whole, correction="none")
    fair = compare_outcomes(outcomes, trained, correction="none") if trained is not None else None
    rows = []
    for place, (point, outcome) in enumerate(zip(points, outcomes, strict=True)):
        value, low, high = (float(column[place]) for column in values)
        rows.append(
            {
                "order": point.order,
                "scope": "all",
                "step": point.step,
                "heads_left": len(heads) - len(point.gone),
                "units_left": point.left,
                "removed": ",".join(map(str, point.removed)),
                "kept": ",".join(str(head) for head in heads if head not in set(point.gone)),
                "metric": outcome.name,
                "more": "better" if outcome.higher_is_better else "worse",
                "value": value,
                "low": low,
                "high": high,
                **_difference("delta", "p", told.one(place)),
                "n": len(outcome),
                "part": "held-out",
                "healed": healed,
                **({"right": packed(outcome.scores)} if outcome.name == "accuracy" else {}),
                **({} if fair is None else _difference("fair", "fair_p", fair.one(place))),
            }
        )
    return rows


def packed(right: np.ndarray) -> str:
    """Right (1) and wrong (0) by example, four a hexadecimal digit.

    >>> packed(np.array([1.0, 0, 1, 1, 1]))
    'b8'
    """
    return np.packbits(right.astype(bool)).tobytes().hex()


def unpacked(digits: str, n: int) -> np.ndarray:
    """The same again, for `n` examples."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), np.uint8))[:n].astype(float)


def _difference(name: str, p: str, found: Any) -> dict[str, float]:
    return {
        name: float(found.value),
        f"{name}_low": float(found.low),
        f"{name}_high": float(found.high),
        p: float(found.p),
    }


def free(rows: Sequence[dict[str, Any]], name: str = "delta", p: str = "p") -> dict[str, Any]:
    """How far one can go down an order before a loss is significant: tested in fixed sequence.

    Every point is tested at the full level and the walk ends at the first loss that is
    significant (Maurer, Hothorn and Lehmacher 1995): no correction is needed.

    >>> rows = [{"units_left": 3, "delta": -0.1, "p": 0.3, "more": "better"},
    ...         {"units_left": 2, "delta": -0.4, "p": 0.01, "more": "better"}]
    >>> free(rows)["units_left"]
    3
    """
    return _last(rows, lambda row: not (_loss(row, row[name]) > 0 and row[p] < LEVEL))


def within(rows: Sequence[dict[str, Any]], margin: float, name: str = "delta") -> dict[str, Any]:
    """How far the worst that the interval allows stays within a margin, in fixed sequence."""
    return _last(
        rows,
        lambda row: max(_loss(row, row[f"{name}_low"]), _loss(row, row[f"{name}_high"])) <= margin,
    )


def _loss(row: dict[str, Any], delta: float) -> float:
    return -delta if row["more"] == "better" else delta


def _last(rows: Sequence[dict[str, Any]], holds: Any) -> dict[str, Any]:
    """The last row before the first that fails; empty where the first fails already."""
    found: dict[str, Any] = {}
    for row in sorted(rows, key=lambda row: -row["units_left"]):
        if not holds(row):
            break
        found = row
    return {
        key: found[key] for key in ("units_left", "heads_left", "value", "delta") if key in found
    }
