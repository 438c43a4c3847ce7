"""Units: heads that can only go together, because they share keys or a whole layer's weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from headcount.heads import Head
from headcount.models.anatomy import Anatomy

__all__ = ["units_of"]


def units_of(anatomy: Anatomy, heads: Iterable[Head] | None = None) -> list[tuple[Head, ...]]:
    """Every head, or these, in units that can be removed alone, in the model's order.

    One head where each has keys of its own; a group of query heads that share keys; the same
    head of all layers where one module serves them (ALBERT). A unit that is named in part is
    left out.
    """
    members: dict[tuple[str, int], list[Head]] = defaultdict(list)
    for site in anatomy.sites:
        size = site.heads // site.kv_heads
        for place, head in enumerate(site.names):
            members[site.module, place // size].append(head)
    named = None if heads is None else set(heads)
    return [tuple(unit) for unit in members.values() if named is None or named >= set(unit)]
