"""What a figure needs, and the one sentence that says what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError
from headcount.table import HeadTable

__all__ = ["SURVEY", "maker", "need_arrays", "need_columns", "need_rows"]

_SCORE = "`headcount score MODEL --task TASK --by {} -o RUN`"
_TREES = "`headcount survey MODEL --treebank FILE -o RUN`"
#: The command that makes a frame, a column, or columns that begin so.
_MAKES = {
    "ablation": _SCORE.format("ablation"),
    "gradient": _SCORE.format("gradient"),
    "relevance": _SCORE.format("relevance"),
    "noop": "`headcount survey MODEL --text FILE --roles -o RUN`",
    "pattern": "`headcount survey MODEL --text FILE --patterns -o RUN`",
    "curve": "`headcount prune MODEL --task TASK -o DIR` or `headcount report MODEL`",
    "pairs": "`headcount survey MODEL --text FILE --families -o RUN`",
    "changes": "`headcount compare A B --text FILE -o RUN`",
    "coreference": "`headcount survey MODEL --coref FILE -o RUN`",
    "roles": _TREES,
    "relations": _TREES,
    "features": _TREES,
    "links": _TREES,
    "to_": _TREES,
}
SURVEY = "`headcount survey MODEL --text FILE -o RUN`"


def maker(name: str) -> str:
    """The command that makes a frame or a column."""
    return next((made for start, made in _MAKES.items() if name.startswith(start)), SURVEY)


def need_columns(table: HeadTable, names: Iterable[str]) -> None:
    """Refuse a table that lacks a column, has no heads, or knows none of the columns of any."""
    wanted = list(names)
    for name in wanted:
        if name not in table.frame:
            raise RunError(f"There is no column '{name}' in this table; {maker(name)} makes it.")
    if not len(table.frame):
        raise UsageError("The table has no heads, so there is nothing to draw.")
    if table.frame[wanted].isna().all(axis=None):
        words = ", ".join(f"'{name}'" for name in wanted)
        why = next((f": {table.notes[name]}" for name in wanted if name in table.notes), ".")
        raise UsageError(f"No head of this table has a value of {words}{why}")


def need_rows(
    frame: pd.DataFrame, columns: Iterable[str], what: str, known: str | None = None
) -> None:
    """Refuse a frame without these columns, without rows, or that knows nothing of one column."""
    lacking = [name for name in columns if name not in frame]
    if lacking:
        raise UsageError(f"The frame of {what} has no column '{lacking[0]}'; give a run's own.")
    if not len(frame):
        raise UsageError(f"The frame of {what} has no rows, so there is nothing to draw.")
    if known is not None and not frame[known].notna().any():
        raise UsageError(
            f"The frame of {what} has no number in '{known}', so there is nothing to draw."
        )


def need_arrays(pairs: Mapping[str, np.ndarray]) -> None:
    """Refuse pairs without heads or without their places on the plane."""
    for name in ("heads", "mds"):
        if name not in pairs or not len(pairs[name]):
            raise UsageError(f"The pairs have no '{name}'; {maker('pairs')} makes them.")
