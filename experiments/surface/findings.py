"""Clark et al.'s published findings, each asked of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

import headcount as hc


def by_layer(table: hc.HeadTable, column: str) -> np.ndarray:
    """Values `[layer, head]`."""
    values = table.frame[column]
    layers = values.index.get_level_values("layer").max() + 1
    return values.to_numpy().reshape(layers, -1)


def over(table: hc.HeadTable, column: str, bar: float) -> dict[str, float]:
    """Heads above a bar with their values, highest first."""
    ranked = {str(head): float(table.frame.loc[tuple(head), column]) for head in table.rank(column)}
    return {head: round(value, 3) for head, value in ranked.items() if value > bar}


def findings(table: hc.HeadTable) -> dict[str, Any]:
    """The numbers that decide whether each finding holds."""
    averaged = ("self", "previous", "next", "first", "separator", "punctuation", "entropy")
    mean = {column: by_layer(table, column).mean(1) for column in averaged}
    ends, first = by_layer(table, "separator_to_separator"), by_layer(table, "entropy_first")
    uniform = float(table.frame["entropy_uniform"].iloc[0])
    return {
        "previous_over_half": over(table, "previous", 0.5),
        "next_over_half": over(table, "next", 0.5),
        "separator_over_half": over(table, "separator", 0.5),
        "first_over_half": over(table, "first", 0.5),
        **{f"mean_{column}_by_layer": mean[column].round(4).tolist() for column in averaged},
        "separator_to_separator_by_layer": ends.mean(1).round(4).tolist(),
        "entropy_first_by_layer": first.mean(1).round(4).tolist(),
        "entropy_uniform": round(uniform, 4),
        "broadest": [
            {"head": str(head), "entropy": round(float(table.frame.loc[tuple(head), "entropy"]), 3)}
            for head in table.rank("entropy")[:5]
        ],
    }
