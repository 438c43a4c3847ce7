"""Do two measures, two data sets or two seeds rank heads alike?

Michel et al., NeurIPS 2019, section 3.4, compare ablations of single heads on two data sets by
Pearson's correlation; Spearman and Kendall ask about the order alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import UsageError
from headcount.records import HeadTable
from headcount.stats import Floats, Kind

#: The question that scores answer, in the table's menus.
GROUP = "How much it matters"
#: Enough for the ends of an interval; nothing is tested with them.
DRAWS = 2_000


def agreement(
    tables: HeadTable | Mapping[str, HeadTable],
    columns: Sequence[str] | None = None,
    *,
    kinds: Sequence[Kind] = ("spearman", "kendall", "pearson"),
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of scores, a row each: over all heads, then stack by stack.

    One table compares its columns (by default all that rank heads); several, by the name of their
    data or seed, also each column with itself: "gradient on tatoeba" with "gradient on lohelp".
    Columns whose lower values rank first are turned round. Intervals come from resampled heads.
    The frame has first, second, stack, kind, value, low, high, heads and note.

    >>> from headcount.records.heads import Head
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"gradient": [1, 2, 3, 4], "ablation": [2, 1, 3, 4]})
    >>> found = agreement(table, kinds=["spearman"])
    >>> found[["first", "second", "stack", "value", "heads"]].values.tolist()
    [['gradient', 'ablation', 'all', 0.8, 4]]
    """
    scores, stacks = _scores(tables, columns)
    parts = []
    for stack, heads in _groups(stacks).items():
        chosen = {name: values[heads] for name, values in scores.items()}
        found = stats.agreement_matrix(chosen, kinds, draws=draws, seed=seed)
        found.insert(2, "stack", stack)
        parts.append(found)
    return pd.concat(parts, ignore_index=True)


def compared(table: HeadTable, names: Sequence[str] = ()) -> pd.DataFrame | None:
    """Agreement of the scores of a table, and of the columns named; None where there is but one."""
    columns = list(dict.fromkeys([*importance_columns(table), *names]))
    return agreement(table, columns) if len(columns) > 1 else None


def importance_columns(table: HeadTable) -> list[str]:
    """The columns that say how much a head matters, and confidence, which often goes with it."""
    return [
        name
        for name in table.names
        if table.column(name).direction is not None
        and (table.column(name).group == GROUP or name == "confidence")
    ]


def _scores(
    tables: HeadTable | Mapping[str, HeadTable], columns: Sequence[str] | None
) -> tuple[dict[str, Floats], list[str]]:
    """Scores by name, and the stack of each head; all tables must be of the same heads."""
    several = {"": tables} if isinstance(tables, HeadTable) else dict(tables)
    heads = next(iter(several.values())).heads if several else []
    scores: dict[str, Floats] = {}
    for name, table in several.items():
        if table.heads != heads:
            raise UsageError(
                f"The table '{name}' has {len(table)} heads and the first {len(heads)}, not the "
                "same ones; compare tables of one architecture."
            )
        for column in _chosen(table, columns):
            scores[f"{column} on {name}" if name else column] = _ranking(table, column)
    if len(scores) < 2:
        told = ", ".join(scores) or "none"
        raise UsageError(
            f"Agreement needs two scores or more, and there is {told}; give a table with two "
            "columns that rank heads, or two tables by name."
        )
    return scores, [head.stack for head in heads]


def _chosen(table: HeadTable, columns: Sequence[str] | None) -> Sequence[str]:
    if columns is not None:
        return columns
    return importance_columns(table) or table.names


def _ranking(table: HeadTable, column: str) -> Floats:
    """A column's values, turned so that higher ranks first."""
    sign = -1.0 if table.column(column).direction == "lower" else 1.0
    return sign * table.numbers(column)


def _groups(stacks: Sequence[str]) -> dict[str, np.ndarray]:
    """All heads, and those of each stack where there are several."""
    names = list(dict.fromkeys(stacks))
    every = {"all": np.arange(len(stacks))}
    if len(names) < 2:
        return every
    return every | {name: np.flatnonzero(np.array(stacks) == name) for name in names}
