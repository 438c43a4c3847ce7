"""The functions of the heads that survive, and which stacks and layers lose theirs first.

Voita et al. 2019: figure 8 (functions of retained encoder heads at each sparsity), figures 9 and
10 (heads left by kind of attention and by layer). Frames in, frames out; no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from headcount.errors import UsageError
from headcount.records import Head, parse_heads

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
