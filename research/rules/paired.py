"""Does one rule of relevance agree better with another score than a second rule, on the same heads?

Two ways. Over a stack: Spearman's correlation of each rule with the other score, and the difference
of the two over resampled heads, the same heads for both (a paired bootstrap). Within layers: the
same correlation within each layer, since relevance is a share of its layer, and signs flipped layer
by layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.rooms.agreement.ranks import correlate_weighted
from headcount.stats import DRAWS, Floats, holm, resample_weights, sign_flip

#: A score of every head by its name, such as "enc.0.3".
Scores = Mapping[str, float]
STACKS = ("enc", "dec", "cross")
TOGETHER, WITHIN = "mean of stacks", "within layers"


def differences(rules: Mapping[str, Scores], others: Mapping[str, Scores]) -> dict[str, Any]:
    """The first rule minus each of the rest, by the other score: stacks, their mean, layers.

    `p_adjusted` is Holm's, over the rules and stacks of one other score; over the rules alone where
    stacks are taken together.
    """
    first, *rest = rules
    told: dict[str, Any] = {}
    for name, other in others.items():
        found = {rule: _compared(rules[first], rules[rule], other) for rule in rest}
        for family in (STACKS, (TOGETHER,), (WITHIN,)):
            rows = [rows[where] for rows in found.values() for where in family if where in rows]
            for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
                row["p_adjusted"] = round(float(p), 5)
        told[name] = {f"{first} - {rule}": rows for rule, rows in found.items()}
    return told


def _compared(one: Scores, two: Scores, other: Scores) -> dict[str, dict[str, float]]:
    stacks = [stack for stack in STACKS if any(head.startswith(f"{stack}.") for head in one)]
    drawn, told = [], {}
    for number, stack in enumerate(stacks):
        heads = [head for head in one if head.startswith(f"{stack}.")]
        drawn.append(_drawn(*_arrays(heads, one, two, other), seed=number))
        told[stack] = paired(drawn[-1])
    if len(stacks) > 1:
        told[TOGETHER] = paired(np.mean(drawn, axis=0))
    return told | {WITHIN: within_layers(one, two, other)}


def _drawn(one: Floats, two: Floats, other: Floats, *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """The difference of the correlations over all heads, then over heads drawn again."""
    chunks = [np.ones((1, len(one))), *resample_weights(len(one), draws, seed)]
    return np.concatenate([
        correlate_weighted(one, other, chunk, "spearman")
        - correlate_weighted(two, other, chunk, "spearman")
        for chunk in chunks
    ])  # fmt: skip


def paired(drawn: Floats) -> dict[str, float]:
    """A difference (the first number), its 95% interval and its two-sided p over draws.

    >>> paired(np.array([0.3, *np.linspace(0.1, 0.5, 999)]))
    {'difference': 0.3, 'low': 0.11, 'high': 0.49, 'p': 0.002}
    """
    value, draws = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    low, high = np.quantile(draws, [0.025, 0.975])
    side = int(min(np.sum(draws <= 0), np.sum(draws >= 0)))
    p = min(1.0, 2 * (side + 1) / (len(draws) + 1))
    return {
        "difference": round(value, 3), "low": round(float(low), 3),
        "high": round(float(high), 3), "p": round(p, 5),
    }  # fmt: skip


def within_layers(one: Scores, two: Scores, other: Scores) -> dict[str, float]:
    """The mean over layers of the difference of correlations within a layer; layers are the unit.

    >>> heads = [f"enc.{layer}.{head}" for layer in range(6) for head in range(3)]
    >>> up = {head: float(head[-1]) for head in heads}
    >>> down = {head: -value for head, value in up.items()}
    >>> within_layers(up, down, up)
    {'difference': 2.0, 'layers': 6, 'better': 6, 'p': 0.03125}
    """
    layers: dict[str, list[str]] = {}
    for head in one:
        layers.setdefault(head.rpartition(".")[0], []).append(head)
    each = np.array([
        _drawn(*_arrays(heads, one, two, other), draws=0)[0] for heads in layers.values()
    ])  # fmt: skip
    return {
        "difference": round(float(each.mean()), 3), "layers": len(each),
        "better": int(np.count_nonzero(each > 0)), "p": round(float(sign_flip(each).p), 5),
    }  # fmt: skip


def _arrays(heads: Sequence[str], *scores: Scores) -> tuple[Floats, ...]:
    return tuple(np.array([each[head] for head in heads]) for each in scores)
