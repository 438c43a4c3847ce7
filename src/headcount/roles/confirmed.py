"""Rows that hold on the half that judges, after they held on the half that chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

__all__ = ["confirmed"]

#: Whether each row passes, as a mask.
Rule = Callable[[pd.DataFrame], pd.Series]


def confirmed(frame: pd.DataFrame, key: Sequence[str], chosen: Rule, judged: Rule) -> pd.DataFrame:
    """Rows of `report` that pass `judged` and whose twins of `select` passed `chosen`.

    >>> frame = pd.DataFrame({"head": [0, 1, 0, 1], "split": ["select"] * 2 + ["report"] * 2,
    ...                       "value": [0.9, 0.1, 0.8, 0.9]})
    >>> rule = lambda rows: rows["value"] > 0.5
    >>> confirmed(frame, ["head"], rule, rule)["head"].tolist()
    [0]
    """
    halves = {split: rows.set_index(list(key)) for split, rows in frame.groupby("split")}
    if not {"select", "report"} <= halves.keys():
        return frame.iloc[:0]
    select, report = halves["select"], halves["report"]
    found = select.index[chosen(select)]
    return report[judged(report) & report.index.isin(found)].reset_index()
