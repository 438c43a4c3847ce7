"""The order in which heads go, and the quality of a model against the heads that are left.

Michel et al., NeurIPS 2019, section 4 and figure 3: scores are estimated once, or again before
every step (`--exact_pruning` of their program); each point is tested against the whole. Heads are
switched off, not removed: that comes to the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from headcount.errors import StatsError, UsageError
from headcount.importance import Sweep, sets, sweep
from headcount.models import Anatomy, Subject
from headcount.pruning.tolerance import LEVEL, share_bound
from headcount.records import Column, Head, HeadTable, parse_heads, working
from headcount.stats import DRAWS, Floats, paired_share_interval
from headcount.tasks import Comparison, Task, compare_outcomes


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


#: What a pruning run and a story add to the head table.
REMOVAL = Column(
    "removal_step",
    meaning="The step of the pruning curve that removes the head.",
    paper="Michel et al. 2019, section 4",
    range=(1, None),
    more="pruned later",
    group="Whether it can be pruned",
    format=".0f",
)


def removal_table(curve: pd.DataFrame, heads: Sequence[Head]) -> HeadTable:
    """The step of the first order that removes each head; NA if it stays to the end.

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


# --- The order in which heads go: the least important first, in units that go together ------------

#: Heads that go together or stay together; most often one.
Unit = tuple[Head, ...]


def removable_units(anatomy: Anatomy, heads: Iterable[Head]) -> list[Unit]:
    """These heads in units that can be removed by themselves, in the model's order.

    One head where each has keys of its own; a group of query heads that share keys; the same
    head of all layers where one module serves them (ALBERT). A unit that is named in part is
    left out.
    """
    members: dict[tuple[str, int], list[Head]] = defaultdict(list)
    for site in anatomy.sites:
        size = site.heads // site.kv_heads
        for place, head in enumerate(site.names):
            members[site.module, place // size].append(head)
    named = set(heads)
    return [tuple(unit) for unit in members.values() if named >= set(unit)]


def candidates(anatomy: Anatomy, stacks: Iterable[str] | None = None) -> list[Unit]:
    """Everything in these stacks that can be cut alone, in the order of the model."""
    chosen = check_stacks(stacks, anatomy.stacks)
    return removable_units(anatomy, [head for head in anatomy.heads if head.stack in chosen])


def check_stacks(stacks: Iterable[str] | None, there: Iterable[str]) -> list[str]:
    """The stacks to take heads from: those named, or all; each must be in the model.

    >>> check_stacks(["cross"], ["enc", "dec"])
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no stack 'cross' in this model; it has enc, dec.
    """
    known = list(there)
    wanted = known if stacks is None else list(dict.fromkeys(stacks))
    for stack in wanted:
        if stack not in known:
            raise UsageError(
                f"There is no stack '{stack}' in this model; it has {', '.join(known)}."
            )
    return wanted


def even_units(units: Sequence[Unit], scores: Mapping[Head, float]) -> list[Unit]:
    """Units of which each takes one from every layer: the least important of all layers together.

    So every layer keeps as many heads, which more configs can say. Layers of different size keep
    what the smallest lacks.

    >>> units = [(Head("enc", layer, head),) for layer in range(2) for head in range(2)]
    >>> scores = dict(zip((unit[0] for unit in units), (0.2, 0.1, 0.3, 0.4)))
    >>> [[str(head) for head in unit] for unit in even_units(units, scores)]
    [['enc.0.1', 'enc.1.0'], ['enc.0.0', 'enc.1.1']]
    """
    layers: dict[tuple[str, int], list[tuple[float, Unit]]] = defaultdict(list)
    for unit, worth in zip(units, worth_of(units, scores), strict=True):
        layers[unit[0][:2]].append((worth, unit))
    ranked = [sorted(layer, key=lambda pair: pair[0]) for layer in layers.values()]
    rounds = zip(*ranked, strict=False)
    return [tuple(head for _, unit in one for head in unit) for one in rounds]


def worth_of(units: Iterable[Unit], scores: Mapping[Head, float]) -> list[float]:
    """The importance of each unit: the sum of its heads'.

    >>> unit = (Head("dec", 0, 0), Head("dec", 0, 1))
    >>> worth_of([unit], {Head("dec", 0, 0): 1.0, Head("dec", 0, 1): 0.5})
    [1.5]
    """
    found = []
    for unit in units:
        lacking = [head for head in unit if not np.isfinite(scores.get(head, np.nan))]
        if lacking:
            raise UsageError(
                f"{lacking[0]} has no score, so it has no place in the order; rank by another "
                "score, or prune only the stacks that have one (--ranking stacks=)."
            )
        found.append(float(sum(scores[head] for head in unit)))
    return found


def spared(units: Iterable[Unit], at_least: int, *, convention: str = "headcount") -> int:
    """How many heads stay for good where every layer keeps at least so many.

    The convention "code" has it as the authors' program, which takes layers for heads and heads
    for layers: of 6 layers with 12 heads it spares 12 instead of 6.

    >>> units = [(Head("enc", layer, head),) for layer in range(6) for head in range(12)]
    >>> spared(units, 1), spared(units, 1, convention="code")
    (6, 12)
    """
    layers = Counter(head[:2] for unit in units for head in unit)
    if convention == "code" and at_least:
        return at_least * max(layers.values(), default=0)
    return sum(min(at_least, heads) for heads in layers.values())


#: The importance of the heads that are left, given those that are gone.
Rank = Callable[[tuple[Head, ...]], Mapping[Head, float]]


@dataclass(frozen=True)
class Order:
    """Which heads go at each step; every step adds to those before it.

    >>> order = Order("gradient", "all", ((Head("enc", 0, 1),), (Head("enc", 0, 0),)))
    >>> [str(head) for head in order.gone(2)], order.gone(0)
    (['enc.0.1', 'enc.0.0'], ())
    """

    name: str
    scope: str
    steps: tuple[tuple[Head, ...], ...]

    def __len__(self) -> int:
        return len(self.steps)

    def thinned(self) -> Order:
        """The same order in every other step, the first among them.

        >>> order = Order("gradient", "all", tuple((Head("enc", 0, n),) for n in range(5)))
        >>> [len(step) for step in order.thinned().steps]
        [1, 2, 2]
        """
        ends = range(1, len(self) + 1, 2)
        parts = [self.steps[max(0, end - 2) : end] for end in ends]
        merged = (tuple(head for step in part for head in step) for part in parts)
        return Order(self.name, self.scope, tuple(merged))

    def gone(self, step: int) -> tuple[Head, ...]:
        """All heads that are gone after a step; after step 0 none."""
        return tuple(head for heads in self.steps[:step] for head in heads)


def ordered(
    units: Sequence[Unit],
    rank: Rank | Mapping[Head, float],
    counts: Sequence[int],
    *,
    at_least: int = 0,
    name: str = "score",
    scope: str = "all",
) -> Order:
    """Remove units, the least important first, until each step's number of heads is reached.

    `rank` is the scores, or a function that estimates them again before every step. The
    `at_least` most important heads of every layer are never taken; steps end where no more can
    go. Equal scores go in the order of the model. A unit that would overshoot waits a step.

    >>> units = [(Head("enc", 0, place),) for place in range(3)]
    >>> scores = dict(zip((unit[0] for unit in units), (0.2, 0.1, 0.3)))
    >>> ordered(units, scores, [1, 2]).steps
    ((Head(stack='enc', layer=0, index=1),), (Head(stack='enc', layer=0, index=0),))
    """
    if at_least < 0:
        raise UsageError(f"At least {at_least} heads a layer were asked for; give 0 or more.")
    left, gone, steps = list(units), [], []  # type: ignore[var-annotated]
    for count in counts:
        scores = rank(tuple(gone)) if callable(rank) else rank
        going = _next(left, worth_of(left, scores), count - len(gone), at_least)
        if not going:
            continue
        steps.append(tuple(head for unit in going for head in unit))
        gone.extend(steps[-1])
        left = [unit for unit in left if unit not in going]
    return Order(name, scope, tuple(steps))


def _next(left: Sequence[Unit], worth: Sequence[float], room: int, at_least: int) -> list[Unit]:
    """The least important units that fit into `room` heads."""
    safe = _protected(left, worth, at_least)
    going: list[Unit] = []
    for place in np.argsort(worth, kind="stable"):
        unit = left[int(place)]
        if unit in safe:
            continue
        if len(unit) > room:
            break
        going.append(unit)
        room -= len(unit)
    return going


def _protected(left: Sequence[Unit], worth: Sequence[float], at_least: int) -> set[Unit]:
    """The most important units of every layer, as many as hold `at_least` heads of each.

    Of equals the last is kept: they go in the order of the model, and so in the authors' program.
    """
    held: dict[tuple[str, int], int] = defaultdict(int)
    safe = set()
    for place in np.argsort(worth, kind="stable")[::-1]:
        unit = left[int(place)]
        layer = unit[0][:2]  # one that serves several layers counts by the first of them
        if held[layer] < at_least:
            safe.add(unit)
            held[layer] += sum(head[:2] == layer for head in unit)
    return safe


def random_scores(heads: Sequence[Head], seed: int) -> dict[Head, float]:
    """Scores drawn at random: the order that every other one must beat.

    >>> random_scores([Head("enc", 0, 0)], 1) == random_scores([Head("enc", 0, 0)], 1)
    True
    """
    drawn = np.random.default_rng(seed).random(len(heads))
    return dict(zip(heads, drawn.tolist(), strict=True))
