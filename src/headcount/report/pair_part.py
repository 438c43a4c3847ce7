"""Which heads resemble one another: places on a map for each stack, and the nearest of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.heads import parse_head
from headcount.report.safe_json import figure, figures
from headcount.report.source import Source

__all__ = ["pair_part"]


def pair_part(source: Source) -> dict[str, Any] | None:
    """The map of heads, its stress, and for each head its nearest with their distance."""
    pairs = source.pairs
    if "mds" not in pairs or "heads" not in pairs:
        return None
    places = source.places
    rows = {
        places[head]: row
        for row, name in enumerate(pairs["heads"].tolist())
        if (head := parse_head(str(name))) in places
    }
    numbers = {row: place for place, row in rows.items()}
    at = [rows.get(place) for place in range(len(places))]
    known = np.array([np.nan if row is None else pairs["mds"][row, 0] for row in at])
    other = np.array([np.nan if row is None else pairs["mds"][row, 1] for row in at])
    return {
        "x": figures(known, 3),
        "y": figures(other, 3),
        "stress": dict(
            zip(_words(pairs, "stacks"), figures(pairs.get("stress", []), 2), strict=False)
        ),
        "near": [[] if row is None else _near(pairs, row, numbers) for row in at],
        "tokens": int(np.max(pairs["tokens"]))
        if "tokens" in pairs and len(pairs["tokens"])
        else None,
        "silhouette": _silhouettes(pairs),
    }


def _near(pairs: dict[str, np.ndarray], row: int, numbers: dict[int, int]) -> list[list[Any]]:
    found = []
    for other in pairs["nearest"][row].tolist():
        if other >= 0 and other in numbers:
            found.append([numbers[other], figure(pairs["js"][row, other], 3)])
    return found


def _silhouettes(pairs: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    if "silhouette" not in pairs or "silhouette_shuffled" not in pairs:
        return {}
    stacks, values, ranges = (
        _words(pairs, "stacks"),
        pairs["silhouette"],
        pairs["silhouette_shuffled"],
    )
    return {s: figures([v, *r], 2) for s, v, r in zip(stacks, values, ranges, strict=False)}


def _words(pairs: dict[str, np.ndarray], name: str) -> list[str]:
    return [str(word) for word in pairs.get(name, np.array([])).tolist()]
