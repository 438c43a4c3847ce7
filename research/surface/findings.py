"""Clark et al.'s published findings, each asked of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headcount as hc
from headcount.stats import mean_interval
from research.names import title
from research.pages import with_tables

AVERAGED = ("self", "previous", "next", "first", "separator", "punctuation", "entropy")


def _top(blocks: np.ndarray) -> np.ndarray:
    """The blocks' values of the layer with the largest mean."""
    found: np.ndarray = blocks[:, blocks.mean(0).argmax()]
    return found


#: What a finding compares, by its name in `intervals`: in words, and from which column's layer
#: means `[block, layer]`.
COMPARED: dict[str, tuple[str, str, Callable[[np.ndarray], np.ndarray]]] = {
    "most_self": ("attention to the token itself, the layer with most", "self", _top),
    "most_separator": ("to [SEP], the layer with most", "separator", _top),
    "most_separator_to_separator": (
        "from [SEP] to [SEP], the layer with most",
        "separator_to_separator",
        _top,
    ),
    "most_first_in_lower_half": (
        "to [CLS], the layer with most of the lower half",
        "first",
        lambda one: _top(one[:, : one.shape[1] // 2]),
    ),
    "punctuation_last_minus_first": (
        "to punctuation, last layer minus first",
        "punctuation",
        lambda one: one[:, -1] - one[:, 0],
    ),
    "entropy_first_minus_least": (
        "entropy, first layer minus the least (nats)",
        "entropy",
        lambda one: one[:, 0] + _top(-one),
    ),
    "entropy_first_in_last_layer": (
        "entropy of the [CLS] row, last layer (nats)",
        "entropy_first",
        lambda one: one[:, -1],
    ),
}


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
    mean = {column: by_layer(table, column).mean(1) for column in AVERAGED}
    ends, first = by_layer(table, "separator_to_separator"), by_layer(table, "entropy_first")
    uniform = float(table.frame["entropy_uniform"].iloc[0])
    return {
        "previous_over_half": over(table, "previous", 0.5),
        "next_over_half": over(table, "next", 0.5),
        "separator_over_half": over(table, "separator", 0.5),
        "first_over_half": over(table, "first", 0.5),
        **{f"mean_{column}_by_layer": mean[column].round(4).tolist() for column in AVERAGED},
        "separator_to_separator_by_layer": ends.mean(1).round(4).tolist(),
        "entropy_first_by_layer": first.mean(1).round(4).tolist(),
        "entropy_uniform": round(uniform, 4),
        "broadest": [
            {"head": str(head), "entropy": round(float(table.frame.loc[tuple(head), "entropy"]), 3)}
            for head in table.rank("entropy")[:5]
        ],
    }


def intervals(blocks: list[hc.HeadTable]) -> dict[str, list[float]]:
    """What findings compare, with the 95% interval that disjoint blocks of texts give (Student)."""
    found = {}
    for name, (_, column, compare) in COMPARED.items():
        values = compare(np.array([by_layer(one, column).mean(1) for one in blocks]))
        told = mean_interval(values.sum(), (values**2).sum(), len(values))
        found[name] = [round(float(end), 4) for end in told]
    return found


def filled(page: str, told: dict[str, Any]) -> str:
    """The page with the table of intervals of such a file."""

    def cell(model: str, name: str) -> str:
        mean, low, high = told["intervals"][model][name]
        return f"{mean:.4f} [{low:.4f}, {high:.4f}]"

    models = told["config"]["models"]
    rows = [
        f"| | {' | '.join(map(title, models))} |",
        f"|---|{'--:|' * len(models)}",
        *(
            f"| {words} | {' | '.join(cell(model, name) for model in models)} |"
            for name, (words, *_) in COMPARED.items()
        ),
    ]
    return with_tables(page, {"intervals": "\n".join(rows)}.__getitem__)
