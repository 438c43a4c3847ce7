"""The quality of a model against the heads that are left, each point tested against the whole.

Michel et al., NeurIPS 2019, figure 3. Heads are shut, not removed: that comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import StatsError, UsageError
from headcount.importance import Sweep, sets, sweep
from headcount.models import Subject
from headcount.pruning.order import Order
from headcount.records import Head, parse_heads
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


# --- The functions of the heads that survive ----------------------------------------------------

#: The functions that the paper counts; a head with none of them is "other".
FUNCTIONS: tuple[str, ...] = ("positional", "syntactic", "rare")

#: Heads left at each sparsity, under any name: a number of heads, a price, a seed.
HeadSets = Mapping[object, str | Iterable[str | Head]]


def survivors(
    sets: HeadSets,
    roles: pd.DataFrame | Mapping[object, pd.DataFrame],
    functions: Iterable[str] = FUNCTIONS,
) -> pd.DataFrame:
    """How many of the heads left have each function, one row a set, stack and function.

    `roles` is the frame of a run (`roles.parquet`): of the whole model, or one for each set,
    measured on that pruned model, as the paper does. A head with several functions counts in
    each, so that the counts of a set may exceed its heads; "other" are heads without any.

    >>> roles = pd.DataFrame({"stack": ["enc"], "layer": [0], "head": [1], "role": ["rare"]})
    >>> found = survivors({2: "enc.0.0,enc.0.1", 1: "enc.0.1"}, roles)
    >>> found[found["heads"] > 0].to_string(index=False)
    'set stack function  heads  left\\n  2   enc     rare      1     2\\n...'
    """
    wanted = [*functions, "other"]
    rows = []
    for name, heads in sets.items():
        left = _heads(heads)
        known = _functions(_roles_of(roles, name), wanted)
        for stack in dict.fromkeys(head.stack for head in left):
            here = [head for head in left if head.stack == stack]
            for function in wanted:
                count = sum(function in known.get(head, {"other"}) for head in here)
                rows.append((str(name), stack, function, count, len(here)))
    return pd.DataFrame(rows, columns=["set", "stack", "function", "heads", "left"])


def left_by_stack(sets: HeadSets, every: Iterable[Head]) -> pd.DataFrame:
    """How many heads of each stack are left, and their share, one row a set and stack (fig. 9).

    >>> every = [Head("enc", 0, 0), Head("enc", 0, 1), Head("cross", 0, 0)]
    >>> left_by_stack({"a": "enc.0.1,cross.0.0"}, every)["share"].tolist()
    [0.5, 1.0]
    """
    return _counted(sets, list(every), lambda head: (head.stack,), ["stack"])


def left_by_layer(sets: HeadSets, every: Iterable[Head], pool: int = 1) -> pd.DataFrame:
    """How many heads of each layer are left, one row a set, stack and layer (fig. 10).

    `pool` layers count as one, under the number of the first: the paper pools pairs.

    >>> every = [Head("dec", layer, 0) for layer in range(4)]
    >>> left_by_layer({"a": "dec.1.0,dec.3.0"}, every, pool=2)["heads"].tolist()
    [1, 1]
    """
    if pool < 1:
        raise UsageError(f"pool is {pool}; it must be 1 or more layers.")

    def place(head: Head) -> tuple[object, ...]:
        return head.stack, head.layer // pool * pool

    return _counted(sets, list(every), place, ["stack", "layer"])


def _counted(sets: HeadSets, every: list[Head], place: object, names: list[str]) -> pd.DataFrame:
    """Heads left and heads there at each place."""
    assert callable(place)
    there: dict[tuple[object, ...], int] = {}
    for head in every:
        there[place(head)] = there.get(place(head), 0) + 1
    rows = []
    for name, heads in sets.items():
        left = _heads(heads)
        _check(left, every, name)
        for spot, whole in there.items():
            count = sum(place(head) == spot for head in left)
            rows.append((str(name), *spot, count, whole, count / whole))
    return pd.DataFrame(rows, columns=["set", *names, "heads", "there", "share"])


def _heads(heads: str | Iterable[str | Head]) -> list[Head]:
    found = parse_heads(heads)
    if len(set(found)) < len(found):
        twice = next(head for head in found if found.count(head) > 1)
        raise UsageError(f"{twice} is named twice in a set of heads; name each once.")
    return found


def _check(left: list[Head], every: list[Head], name: object) -> None:
    known = set(every)
    strange = [str(head) for head in left if head not in known]
    if strange:
        raise UsageError(f"The set {name} has the head {strange[0]}, which the model has not.")


def _roles_of(roles: pd.DataFrame | Mapping[object, pd.DataFrame], name: object) -> pd.DataFrame:
    found = roles if isinstance(roles, pd.DataFrame) else roles.get(name)
    if found is None:
        raise UsageError(f"There is no roles frame for the set {name}; give one for each, or one.")
    lacking = {"stack", "layer", "head", "role"} - set(found.columns)
    if lacking:
        raise UsageError(f"The roles frame has no column '{sorted(lacking)[0]}'; give a run's own.")
    return found


def _functions(roles: pd.DataFrame, wanted: list[str]) -> dict[Head, set[str]]:
    """The functions of each head that has any of those wanted."""
    known: dict[Head, set[str]] = {}
    columns = [roles[name] for name in ("stack", "layer", "head", "role")]
    for stack, layer, index, role in zip(*columns, strict=True):
        if role in wanted and role != "other":
            known.setdefault(Head(str(stack), int(layer), int(index)), set()).add(str(role))
    return known
