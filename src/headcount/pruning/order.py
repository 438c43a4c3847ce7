"""The order in which heads go: the least important first, in steps, in units that go together.

Michel et al., NeurIPS 2019, section 4: scores are estimated once, or again before every step
(`--exact_pruning` of their program).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.errors import UsageError
from headcount.models import Anatomy
from headcount.records import Head

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
    """Everything in these stacks that can be cut out by itself, in the order of the model."""
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
                "score, or prune only the stacks that have one (--stacks)."
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
    """Remove units, the least important first, until so many heads are gone at each step.

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
