"""How many heads can be pruned: one rule, for `prune`, the page, the terminal and Python.

A step of the pruning curve passes when the one-sided 95% confidence bound of its loss, on examples
that the order was not chosen on, is within a tolerance; the first that fails ends it (a
fixed-sequence test: Maurer, Hothorn & Lehmacher 1995). So fewer examples never look better. No
model library is loaded here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.errors import UsageError
from headcount.stats import Floats, paired_share_interval

if TYPE_CHECKING:
    import pandas as pd

#: How sure a bound is, on its one side.
LEVEL = 0.95

# --- Points of a metric, and how many may be lost -----------------------------------------------

#: Metrics that are shares or correlations: a point is a hundredth.
_OF_ONE = ("accuracy", "f1", "matthews", "pearson", "spearman")
_UNITS = {"loss": "nats", "perplexity": "perplexity", "bleu": "BLEU", "chrf": "chrF"}
#: What may be lost where nobody says: points, or percent of the whole model's value.
_USUAL = {**dict.fromkeys(_OF_ONE, "1"), "bleu": "0.5", "chrf": "0.5"}


def point_of(metric: str) -> float:
    """One point of a metric, as the metric counts.

    A hundredth for accuracy, F1 and correlations; 1 of 100 for BLEU and chrF; a nat for losses.

    >>> point_of("accuracy"), point_of("bleu")
    (0.01, 1.0)
    """
    return 0.01 if metric in _OF_ONE else 1.0


def unit_of(metric: str) -> str:
    """What a point of a metric is called.

    >>> unit_of("accuracy"), unit_of("loss")
    ('points', 'nats')
    """
    return "points" if metric in _OF_ONE else _UNITS.get(metric, metric)


def points_in_words(points: float, metric: str) -> str:
    """A number of points in words, not to be confused with a percentage.

    >>> points_in_words(0.5, "accuracy"), points_in_words(0.5, "bleu")
    ('0.5 points of accuracy (0.005)', '0.5 BLEU')
    """
    if metric in _OF_ONE:
        return f"{points:g} points of {metric} ({points / 100:g})"
    return f"{points:g} {_UNITS.get(metric, f'of {metric}')}"


def amount_in_words(amount: float, metric: str) -> str:
    """A loss in the metric's own unit, in words.

    >>> amount_in_words(0.0123, "accuracy"), amount_in_words(0.0123, "loss")
    ('1.2 points of accuracy', '0.012 nats')
    """
    points = float(f"{amount / point_of(metric):.2g}")
    return points_in_words(points, metric).partition(" (")[0]


@dataclass(frozen=True)
class Tolerance:
    """The loss that may be, by metric: points, or percent of the whole model's value.

    Where a metric is not named: one point of accuracy, F1 and correlations, half a point of BLEU
    and chrF, 1% of everything else (losses).

    >>> read_tolerance("bleu=1,loss=2%").of("loss", 3.0), read_tolerance(None).of("bleu", 30.0)
    (0.06, 0.5)
    """

    given: tuple[tuple[str, str], ...] = ()

    def _said(self, metric: str) -> str:
        said = dict(self.given)
        return said.get(metric) or said.get("") or _USUAL.get(metric, "1%")

    def of(self, metric: str, whole: float) -> float:
        """What may be lost, in the metric's own unit, by a model that has so much of it."""
        said = self._said(metric)
        if said.endswith("%"):
            return round(abs(whole) * float(said[:-1]) / 100, 12)
        return float(said) * point_of(metric)

    def words(self, metric: str) -> str:
        """The same for people.

        >>> read_tolerance(None).words("loss"), read_tolerance("0.5").words("accuracy")
        ('1% of loss', '0.5 points of accuracy')
        """
        said = self._said(metric)
        if said.endswith("%"):
            return f"{said} of {metric}"
        return (
            points_in_words(float(said), metric).partition(" (")[0].replace("1 points", "1 point")
        )

    def __str__(self) -> str:
        return ",".join(f"{name}={said}" if name else said for name, said in self.given)


def read_tolerance(given: Tolerance | str | float | None) -> Tolerance:
    """A tolerance as people write it: ``0.5`` (points), ``1%``, or ``bleu=0.5,loss=1%``.

    >>> read_tolerance("much")
    Traceback (most recent call last):
    headcount.errors.UsageError: The tolerance is 'much'; write points (0.5), percent of the whole
    model's value (1%), or both by metric (bleu=0.5,loss=1%).
    """
    if isinstance(given, Tolerance):
        return given
    if given is None:
        return Tolerance()
    found = []
    for word in str(given).split(","):
        name, _, said = word.strip().rpartition("=")
        try:
            fine = 0 <= float(said.strip().removesuffix("%")) < math.inf
        except ValueError:
            fine = False
        if not fine:
            raise UsageError(
                f"The tolerance is '{given}'; write points (0.5), percent of the whole model's "
                "value (1%), or both by metric (bleu=0.5,loss=1%)."
            )
        found.append((name.strip(), said.strip()))
    return Tolerance(tuple(found))


# --- The rule -----------------------------------------------------------------------------------


def last_within(bounds: Sequence[float] | Floats, limit: float) -> int:
    """The last of the steps, tried in turn, whose bound is within the limit; 0 for none.

    >>> last_within([0.1, 0.2, 0.9, 0.1], 0.5), last_within([], 1)
    (2, 0)
    """
    passed = np.asarray(bounds, dtype=float) <= limit
    return len(passed) if passed.all() else int(np.argmin(passed))


def examples_needed(limit: float) -> int:
    """How many examples can show, of a share, that no more than `limit` is lost, if nothing is.

    The bound of `paired_share_interval` where no answer changes: 1.64 √2 / (n + 2).

    >>> examples_needed(0.005), examples_needed(0.01)
    (464, 231)
    """
    return math.ceil(_Z * math.sqrt(2) / limit) - 2 if limit > 0 else 2**62


#: The normal quantile of `LEVEL`.
_Z = NormalDist().inv_cdf(LEVEL)


def share_bound(n: int) -> float:
    """The bound of a share's loss where none of n answers changes: the least that can be shown.

    >>> round(share_bound(436), 4)
    0.0053
    """
    same = np.ones(n)
    return float(-paired_share_interval(same, same, confidence=2 * LEVEL - 1).low)


def lost_in_words(metric: str, n: int, bound: float, loss: float) -> str:
    """The most that is lost, how sure that is, and the smallest loss that could have been seen.

    >>> lost_in_words("accuracy", 436, 0.008, 0.002)
    'at most 0.8 points of accuracy is lost (95% bound, n = 436; smallest detectable loss 0.6 points
    of accuracy)'
    """
    if not math.isfinite(bound):
        return f"n = {n:,} is too few for a test, or the metric is undefined"
    lost = f"at most {amount_in_words(bound, metric)} is lost" if bound > 0 else "nothing is lost"
    return f"{lost} (95% bound, n = {n:,}; {_unseen(bound - loss, metric)})"


def _unseen(visible: float, metric: str) -> str:
    return f"smallest detectable loss {amount_in_words(visible, metric)}"


#: Columns of a curve that are in the unit of its metric.
_FIGURES = ("value", "low", "high", "delta", "delta_low", "delta_high", "bound", "chance")


def in_points(curve: pd.DataFrame) -> pd.DataFrame:
    """A curve with every figure of its metric in points, as people read them."""
    scale = curve["metric"].map(point_of)
    return curve.assign(**{name: curve[name] / scale for name in _FIGURES if name in curve})


def lost_at(row: Mapping[Any, Any]) -> str:
    """The most that is lost at a point of a curve, in words."""
    loss = -row["delta"] if row["more"] == "better" else row["delta"]
    return lost_in_words(row["metric"], row["n"], row["bound"], float(loss))


def at_chance(row: Mapping[Any, Any]) -> bool:
    """Whether a point of a curve does not beat `Task.chance` (95%).

    >>> at_chance({"more": "better", "value": 0.52, "low": 0.47, "high": 0.57, "chance": 0.51})
    True
    """
    chance = row.get("chance")
    if chance is None or chance != chance:
        return False
    better = row["more"] == "better"
    end = row["low" if better else "high"]
    end = row["value"] if end != end else end
    return bool(end <= chance if better else end >= chance)


@dataclass(frozen=True)
class CanGo:
    """How many heads can be pruned by one metric: the bound of the loss, and the sample size."""

    metric: str
    #: Examples that judged.
    n: int
    order: str
    #: The step of that order; 0 where no head can be pruned.
    step: int
    heads: int
    #: What may be lost, in words and in the metric's own unit.
    within: str
    tolerance: float
    #: The 95% bound of the loss at that step; at the first step where no head can be pruned.
    bound: float
    #: The smallest loss that so many examples could have told from none.
    visible: float
    names: tuple[str, ...] = ()
    #: Whether the weights had learned since.
    healed: bool = False
    #: The first step that fails: heads, the bound of their loss, and the loss; None where all pass.
    beyond: tuple[int, float, float] | None = None

    @property
    def sentence(self) -> str:
        """For people.

        >>> CanGo("accuracy", 436, "gradient", 1, 4, "1 point of accuracy", 0.01, 0.008, 0.006
        ... ).sentence
        '4 heads can be pruned within 1 point of accuracy: at most 0.8 points of accuracy is lost
        (95% bound, n = 436; smallest detectable loss 0.6 points of accuracy).'
        """
        lost = lost_in_words(self.metric, self.n, self.bound, self.bound - self.visible)
        if self.heads:
            return f"{_heads(self.heads)} can be pruned within {self.within}: {lost}."
        if math.isfinite(self.bound):
            lost = f"the first step may lose {amount_in_words(self.bound, self.metric)} "
            lost += f"(n = {self.n:,}; {_unseen(self.visible, self.metric)})"
        return f"No head can be removed within {self.within}: {lost}."

    @property
    def needed(self) -> str:
        """What `prune` would need to remove more; empty where every step passes.

        >>> CanGo("accuracy", 436, "gradient", 1, 4, "1 point of accuracy", 0.01, 0.008, 0.006,
        ... beyond=(7, 0.0123, 0.004)).needed
        '7 heads would need --max-loss 1.3, or roughly 830 examples, assuming the same drop.'
        """
        if self.beyond is None or not math.isfinite(self.beyond[1]):
            return ""
        heads, bound, loss = self.beyond
        points = bound / point_of(self.metric)
        grain = 10.0 ** (1 - math.floor(math.log10(points)))
        would = (
            f"{_heads(heads)} would need --max-loss {math.ceil(points * grain - 1e-9) / grain:g}"
        )
        if loss >= self.tolerance:
            lost = amount_in_words(loss, self.metric)
            return f"{would}; more examples would not help, as {lost} was lost here."
        more = float(f"{self.n * ((bound - loss) / (self.tolerance - loss)) ** 2:.2g}")
        return f"{would}, or roughly {more:,.0f} examples, assuming the same drop."

    @property
    def most(self) -> str:
        """The most that is lost, or that the first step may lose, and on how many examples."""
        if not math.isfinite(self.bound):
            return f"n = {self.n:,}, too few for a test"
        lost = amount_in_words(max(self.bound, 0.0), self.metric)
        told = f"at most {lost} lost" if self.heads else f"the first step may lose {lost}"
        return f"{told}, n = {self.n:,}"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {**vars(self), "names": list(self.names), "sentence": self.sentence}


def _heads(count: int) -> str:
    return "1 head" if count == 1 else f"{count} heads"


def can_go(curve: pd.DataFrame, tolerance: Tolerance | str | float | None = None) -> list[CanGo]:
    """What the rule says of a curve (`curve.parquet`), by each metric that judged it.

    The first order that is not random decides, as in `prune`: the best of several would be chosen
    by what judges it. The strictest comes first: only what all metrics allow. Rows of before
    there were bounds count with the end of their 95% interval.
    """
    allowed = read_tolerance(tolerance)
    rows = curve[~curve["order"].astype(str).str.startswith("random")]
    if "scope" in rows:
        rows = rows[rows["scope"] == "all"]
    if "part" in rows and (rows["part"] == "held-out").any():
        rows = rows[rows["part"] == "held-out"]
    if not len(rows):
        return []
    rows = rows[rows["order"] == rows["order"].iloc[0]]
    found = [_judged(one, allowed) for _, one in rows.groupby("metric", sort=False)]
    return sorted((one for one in found if one is not None), key=lambda one: one.heads)


def freed(frame: pd.DataFrame, tolerance: Tolerance | str | float | None = None) -> list[CanGo]:
    """The same of sets that do not lie within each other: `removed` names all heads of a step."""
    found = []
    for one in can_go(frame, tolerance):
        named = frame.loc[frame["step"] == one.step, "removed"].iloc[0]
        found.append(replace(one, names=tuple(filter(None, named.split(",")))))
    return found


def _judged(rows: pd.DataFrame, allowed: Tolerance) -> CanGo | None:
    """One order by one metric. What was healed counts where nothing else was measured."""
    if "healed" in rows and (rows["step"] > 0).any():
        plain = rows[~rows["healed"].astype(bool)]
        rows = plain if (plain["step"] > 0).any() else rows
    rows = rows.sort_values("step", kind="stable")
    first, steps = rows.iloc[0], rows[rows["step"] > 0]
    if first["step"] != 0 or not len(steps):
        return None
    n = int(first["n"]) if "n" in rows and first["n"] == first["n"] else 0
    metric, whole = str(first["metric"]), int(first["heads_left"])
    limit = allowed.of(metric, float(first["value"]))
    bounds, losses = _bounds(steps, n)
    last = last_within(bounds, limit)
    place = max(last - 1, 0)
    gone_at = whole - steps["heads_left"].to_numpy(int)
    beyond = (
        (int(gone_at[last]), float(bounds[last]), float(losses[last]))
        if last < len(bounds)
        else None
    )
    gone = [str(one) for one in steps["removed"].iloc[:last] if one] if "removed" in steps else []
    return CanGo(
        metric=metric,
        n=n,
        order=str(first["order"]),
        step=int(steps["step"].iloc[place]) if last else 0,
        heads=int(gone_at[place]) if last else 0,
        within=allowed.words(metric),
        tolerance=limit,
        bound=float(bounds[place]),
        visible=float(bounds[place] - losses[place]),
        names=tuple(name for one in gone for name in one.split(",")),
        healed=bool(steps["healed"].iloc[place]) if "healed" in steps else False,
        beyond=beyond,
    )


def _bounds(steps: pd.DataFrame, n: int) -> tuple[Floats, Floats]:
    """The bound of the loss at each step, and the loss; unmeasured is as bad as can be."""
    better = steps["more"].iloc[0] == "better" if "more" in steps else True
    losses = (-1.0 if better else 1.0) * steps["delta"].to_numpy(float)
    if "bound" in steps:
        bounds = steps["bound"].to_numpy(float)
    else:
        end = steps["delta_low"] if better else steps["delta_high"]
        bounds = (-1.0 if better else 1.0) * end.to_numpy(float)
        if str(steps["metric"].iloc[0]) == "accuracy":  # the bootstrap is too sure of few examples
            bounds = np.maximum(bounds, share_bound(max(n, 1)))
    return np.nan_to_num(bounds, nan=np.inf), np.nan_to_num(losses, nan=0.0)
