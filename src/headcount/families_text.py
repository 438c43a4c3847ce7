"""Families of heads for a terminal: how close layers are, and every head's nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headcount.head_families import Families

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["draw_nearest", "family_sentences"]


def family_sentences(found: Families) -> list[str]:
    """A sentence or two for each stack: clusters, and whether heads of one layer lie together."""
    return [_sentence(found, number, stack) for number, stack in enumerate(found.stacks)]


def _sentence(found: Families, number: int, stack: str) -> str:
    rows = [place for place, head in enumerate(found.heads) if head.stack == stack]
    clusters = len(np.unique(found.cluster[rows]))
    said = (
        f"{clusters} clusters"
        if clusters > 1
        else "no clear clusters (mean silhouette below 0.25 however they are cut)"
    )
    told = f"{stack}: {len(rows)} heads in {said}; stress of the map {found.stress[number]:.2f}."
    value, p = found.silhouette[number], found.silhouette_p[number]
    if np.isnan(value):
        return told
    low, high = found.silhouette_shuffled[number]
    return (
        f"{told} Heads of a layer: silhouette {value:+.3f}, shuffled {low:+.3f} to {high:+.3f}, "
        f"p {'=' if p > 0.0005 else '<'} {max(p, 0.0005):.2g}."
    )


def draw_nearest(found: Families, n: int = 10) -> Table:
    """The pairs of heads that are most alike, and of each the divergence; rich prints it."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left")
    for title in ("heads most alike", "", "JS (nats a token)", "clusters"):
        table.add_column(title, justify="right" if "JS" in title else "left", no_wrap=True)
    for first, second in _closest(found, n):
        a, b = found.heads[first], found.heads[second]
        groups = f"{found.cluster[first]}, {found.cluster[second]}"
        table.add_row(str(a), str(b), f"{found.js[first, second]:.4f}", groups)
    return table


def _closest(found: Families, n: int) -> list[tuple[int, int]]:
    apart = np.where(np.tri(len(found.heads), dtype=bool), np.nan, found.js).ravel()
    order = np.argsort(apart, kind="stable")[: min(n, int(np.isfinite(apart).sum()))]
    return [divmod(int(place), len(found.heads)) for place in order]
