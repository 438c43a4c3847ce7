"""Verdicts from a trial: its rows in the table's details, held against thresholds.

A trial leaves one row a head and column in ``details["trials"]``: value, interval, baseline and
p values that are corrected over all heads that were asked the same question.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from headcount.heads import Head
from headcount.roles.role import Verdict
from headcount.table import HeadTable

__all__ = ["ANSWERS", "MEASURES", "head_of", "measured", "passed", "plain_words", "tried"]

#: The details in which trials leave their figures, and what the model itself did.
ANSWERS = "trials"
MEASURES = "trial_models"


def passed(
    table: HeadTable, column: str, *, least: float, level: float, margin: float = 0.0
) -> pd.DataFrame:
    """The rows that reach the threshold, lie so far above the baseline and are no chance."""
    rows = table.details[ANSWERS]
    rows = rows[rows["column"] == column]
    above = rows["value"] - rows["baseline"] >= margin
    held = rows[(rows["value"] >= least) & above & (rows["p_adjusted"] <= level)]
    return held.sort_values("value", ascending=False, kind="stable")


def tried(
    rows: pd.DataFrame,
    role: str,
    label: Callable[[pd.Series], str],
    words: Callable[[pd.Series], str],
) -> list[Verdict]:
    """A verdict for each row, with its label and its evidence in words."""
    return [
        Verdict(
            head_of(row),
            role,
            label(row),
            float(row["value"]),
            float(row["low"]),
            float(row["high"]),
            n=int(row["n"]),
            baseline=float(row["baseline"]),
            p=float(row["p"]),
            p_adjusted=float(row["p_adjusted"]),
            evidence=words(row),
        )
        for _, row in rows.iterrows()
    ]


def plain_words(what: str, row: pd.Series) -> str:
    """What was measured, its value with interval, and the baseline.

    >>> row = pd.Series({"value": 0.86, "low": 0.79, "high": 0.92, "baseline": 0.021,
    ...                  "against": "uniform attention"})
    >>> plain_words("what followed last time", row)
    'what followed last time 0.86 [0.79, 0.92], uniform attention 0.02'
    """
    interval = f"[{row['low']:.2f}, {row['high']:.2f}]"
    return f"{what} {row['value']:.2f} {interval}, {row['against']} {row['baseline']:.2f}"


def head_of(row: pd.Series) -> Head:
    """The head that a row is about."""
    return Head(str(row["stack"]), int(row["layer"]), int(row["head"]))


def measured(table: HeadTable, trial: str, name: str) -> float:
    """A figure of the whole model in a trial; NaN where there is none."""
    rows = table.details.get(MEASURES)
    if rows is None:
        return float("nan")
    found = rows.loc[(rows["trial"] == trial) & (rows["name"] == name), "value"]
    return float(found.iloc[0]) if len(found) else float("nan")
