"""Which heads resemble one another: places on a map for each stack, and the nearest of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.heads import parse_head
from headcount.report.printed import printed
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
        "near": [[] if row is None else _near(pairs, row, numbers) for row in at],
        "notes": {stack: _note(pairs, row) for row, stack in enumerate(_words(pairs, "stacks"))},
    }


def _near(pairs: dict[str, np.ndarray], row: int, numbers: dict[int, int]) -> list[list[Any]]:
    found = []
    for other in pairs["nearest"][row].tolist():
        if other >= 0 and other in numbers:
            found.append([numbers[other], figure(pairs["js"][row, other], 3)])
    return found


def _note(pairs: dict[str, np.ndarray], row: int) -> str:
    """What a stack's map is, how far it may be trusted, and whether layers hang together."""
    said = ["Near means alike: Jensen-Shannon distance of maps (Clark et al. 2019, figure 6)."]
    if row < len(pairs.get("tokens", [])):
        said.append(f"Over {int(pairs['tokens'][row]):,} tokens.")
    stress = pairs.get("stress", np.array([]))[row : row + 1]
    for value in stress[np.isfinite(stress)]:
        said.append(f"Stress {value:.2f}: read neighbourhoods, not exact distances.")
    if "silhouette_shuffled" in pairs and np.isfinite(pairs["silhouette"][row]):
        found, (low, high) = pairs["silhouette"][row], pairs["silhouette_shuffled"][row]
        alike = "more alike than chance" if found > high else "no more alike than chance"
        told = f"silhouette {printed(found)}, shuffled {printed(low)} to {printed(high)}"
        said.append(f"Heads of a layer are {alike} ({told}).")
    return " ".join(said)


def _words(pairs: dict[str, np.ndarray], name: str) -> list[str]:
    return [str(word) for word in pairs.get(name, np.array([])).tolist()]
