"""The functions of the heads that survive, and which stacks and layers lose theirs first.

Voita et al. 2019: figure 8 (functions of retained encoder heads at each sparsity), figures 9 and
10 (heads left by kind of attention and by layer). Frames in, frames out; no model is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from headcount.errors import UsageError
from headcount.records import Head, check_heads, parse_heads
from headcount.surveys.roles import KINDS

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
        verdicts = roles if isinstance(roles, pd.DataFrame) else roles.get(name)
        if verdicts is None:
            raise UsageError(f"There is no roles frame for the set {name}; give one for each.")
        known = _functions(verdicts, wanted)
        for stack in dict.fromkeys(head.stack for head in left):
            here = [head for head in left if head.stack == stack]
            for function in wanted:
                count = sum(function in known.get(head, {"other"}) for head in here)
                rows.append((str(name), stack, function, count, len(here)))
    return pd.DataFrame(rows, columns=["set", "stack", "function", "heads", "left"])


def role_survival(
    before: pd.DataFrame, after: pd.DataFrame, every: Sequence[Head], left: Iterable[Head]
) -> pd.DataFrame:
    """What became of each role of a head, one row each, from the roles frames of two surveys.

    `change` is "kept", "removed" (the head went), "lost" (the head is left, and is no longer seen
    to do it) or "gained". `every` are the heads of the whole model, `left` those that stay.

    >>> was = pd.DataFrame({"stack": "enc", "layer": 0, "head": [0, 1], "role": "rare"})
    >>> every = [Head("enc", 0, number) for number in range(3)]
    >>> now = was.assign(head=[1, 2])
    >>> role_survival(was, now, every, every[1:])["change"].tolist()
    ['removed', 'kept', 'gained']
    """
    was, now = (_functions(frame, [*KINDS]) for frame in (before, after))
    stays = set(left)
    rows: list[tuple[str, bool, str, int, int, str]] = []
    for role in KINDS:
        for head in every:
            had, has = role in was.get(head, ()), role in now.get(head, ())
            gone = "lost" if head in stays else "removed"
            if had or has:
                change = "gained" if not had else "kept" if has else gone
                rows.append((role, KINDS[role].rests, *head, change))
    return pd.DataFrame(rows, columns=["role", "rests", "stack", "layer", "head", "change"])


def left_by_stack(sets: HeadSets, every: Iterable[Head]) -> pd.DataFrame:
    """How many heads of each stack are left, and their share, one row a set and stack (fig. 9).

    >>> every = [Head("enc", 0, 0), Head("enc", 0, 1), Head("cross", 0, 0)]
    >>> left_by_stack({"a": "enc.0.1,cross.0.0"}, every)["share"].tolist()
    [0.5, 1.0]
    """
    return _counted(sets, {head: (head.stack,) for head in every}, ["stack"])


def left_by_layer(sets: HeadSets, every: Iterable[Head], pool: int = 1) -> pd.DataFrame:
    """How many heads of each layer are left, one row a set, stack and layer (fig. 10).

    `pool` layers count as one, under the number of the first: the paper pools pairs.

    >>> every = [Head("dec", layer, 0) for layer in range(4)]
    >>> left_by_layer({"a": "dec.1.0,dec.3.0"}, every, pool=2)["heads"].tolist()
    [1, 1]
    """
    if pool < 1:
        raise UsageError(f"pool is {pool}; it must be 1 or more layers.")
    places = {head: (head.stack, head.layer // pool * pool) for head in every}
    return _counted(sets, places, ["stack", "layer"])


def _counted(
    sets: HeadSets, places: Mapping[Head, tuple[object, ...]], names: list[str]
) -> pd.DataFrame:
    """Heads left and heads there at each place."""
    rows = []
    for name, heads in sets.items():
        left = _heads(heads)
        check_heads(left, places)
        counts = Counter(places[head] for head in left)
        for place, whole in Counter(places.values()).items():
            rows.append((str(name), *place, counts[place], whole, counts[place] / whole))
    return pd.DataFrame(rows, columns=["set", *names, "heads", "there", "share"])


def _heads(heads: str | Iterable[str | Head]) -> list[Head]:
    named = parse_heads(heads)
    twice = [head for head, times in Counter(named).items() if times > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice in a set of heads; name each once.")
    return named


def _functions(roles: pd.DataFrame, wanted: list[str]) -> dict[Head, set[str]]:
    """The functions of each head that has any of those wanted."""
    names = ["stack", "layer", "head", "role"]
    lacking = sorted({*names} - {*roles.columns})
    if lacking:
        raise UsageError(f"The roles frame has no column '{lacking[0]}'; give a run's own.")
    known: dict[Head, set[str]] = {}
    for stack, layer, index, role in zip(*(roles[name] for name in names), strict=True):
        if role in wanted and role != "other":
            known.setdefault(Head(str(stack), int(layer), int(index)), set()).add(str(role))
    return known
