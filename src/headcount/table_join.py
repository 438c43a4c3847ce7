"""Two tables of the same heads become one, wider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.table import HeadTable

__all__ = ["join"]


def join(one: HeadTable, other: HeadTable, *, replace: bool = False) -> HeadTable:
    """The columns of both; where both have one, it must be equal, or `other`'s shall replace it."""
    _check_same_heads(one, other)
    _check_same_weights(one, other)
    shared = [name for name in other.names if name in one.names]
    if replace:
        joined = _side_by_side(one.without(shared), other)
        joined.details = {**one.details, **other.details}
    else:
        for name in shared:
            _check_same_values(one, other, name)
        joined = _lend_intervals(_side_by_side(one, other.without(shared)), other)
    order = [*one.names, *(name for name in other.names if name not in shared)]
    joined.frame = joined.frame[order]
    joined.low, joined.high = (
        part[[name for name in order if name in part]] for part in joined.parts()[1:]
    )
    return joined


def _check_same_heads(one: HeadTable, other: HeadTable) -> None:
    mine, theirs = set(one.heads), set(other.heads)
    for head in [*one.heads, *other.heads]:
        if head not in mine or head not in theirs:
            which = "first" if head in mine else "second"
            raise UsageError(
                f"The tables have different heads ({len(mine)} and {len(theirs)}): {head} is only "
                f"in the {which}. Join tables of one model."
            )


def _check_same_weights(one: HeadTable, other: HeadTable) -> None:
    """Where both say which weights they are of; two models may well have the same heads."""
    mine, theirs = one.provenance.get("weights"), other.provenance.get("weights")
    if mine and theirs and mine != theirs:
        raise UsageError(
            f"The tables are of different weights ({mine} and {theirs}). Join tables of one model."
        )


def _check_same_values(one: HeadTable, other: HeadTable, name: str) -> None:
    """The values must agree exactly, and so must the intervals where both have them."""
    for mine, theirs, bound in zip(one.parts(), other.parts(), ("", "_low", "_high"), strict=True):
        if name not in mine or name not in theirs or mine[name].equals(theirs[name]):
            continue
        row = _first_difference(mine[name], theirs[name])
        raise UsageError(
            f"Both tables have '{name}{bound}', and at {one.heads[row]} it is "
            f"{mine[name].iloc[row]} in the first and {theirs[name].iloc[row]} in the second; "
            "pass replace=True to take the second."
        )


def _first_difference(mine: pd.Series, theirs: pd.Series) -> int:
    pairs = zip(mine.astype(object), theirs.astype(object), strict=True)
    return next(
        row
        for row, (a, b) in enumerate(pairs)
        if not (pd.isna(a) and pd.isna(b)) and not _same(a, b)
    )


def _same(a: Any, b: Any) -> bool:
    return not pd.isna(a) and not pd.isna(b) and bool(a == b)


def _side_by_side(old: HeadTable, new: HeadTable) -> HeadTable:
    """Two tables without a column in common."""
    parts = [pd.concat(pair, axis=1) for pair in zip(old.parts(), new.parts(), strict=True)]
    # Where no old column is left, the new ones' provenance is that of the whole table.
    provenance = old.provenance if old.names else new.provenance or old.provenance
    return type(old)(
        parts[0],
        {**old.columns, **new.columns},
        low=parts[1],
        high=parts[2],
        notes={**old.notes, **new.notes},
        provenance=provenance,
        origins={**old.origins, **_origins(new, provenance)},
        details={**new.details, **old.details},
    )


def _lend_intervals(table: HeadTable, other: HeadTable) -> HeadTable:
    """Intervals, notes and origins that only the other table knows."""
    for part, lent in zip(table.parts()[1:], other.parts()[1:], strict=True):
        for name in lent:
            if name not in part:
                part[name] = lent[name]
    table.notes = {**other.notes, **table.notes}
    table.origins = {**other.origins, **table.origins}
    return table


def _origins(table: HeadTable, known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What produced each column: its table's provenance, where that is news, and its own origin."""
    news = {} if table.provenance == known else table.provenance
    origins = {name: {**news, **table.origins.get(name, {})} for name in table.names}
    return {name: origin for name, origin in origins.items() if origin}
