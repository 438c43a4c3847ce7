"""Clusters of mentions, checked against the words they are to point at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headcount.text.faults import Fault
from headcount.text.sentence import Span

__all__ = ["Clusters", "checked_clusters", "inside"]

#: The mentions of each entity.
Clusters = tuple[tuple[Span, ...], ...]


def checked_clusters(
    clusters: Iterable[Iterable[Any]],
    words: int,
    where: str,
    skipped: Counter[str],
    strict: bool = False,
) -> Clusters:
    """The clusters in the order of their first mentions, without mentions that cannot be.

    A mention outside the text is skipped and counted, and so is one that stands in two clusters,
    after the first, or twice in one. Mentions may nest, and cross.

    >>> checked_clusters([[[3, 4], [0, 1]], [[0, 1], [2, 2], [7, 9]]], 5, "Text 1", Counter())
    ((Span(first=0, last=1), Span(first=3, last=4)), (Span(first=2, last=2),))
    """
    seen: dict[Span, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            fault = _fault(mention, number, words, seen, where)
            if fault is None:
                seen[Span(*mention)] = number
            elif strict:
                raise fault
            else:
                skipped[fault.reason] += 1
    return _ordered(seen)


def inside(clusters: Clusters, start: int, count: int) -> Clusters:
    """The mentions that lie within `count` words from `start`, counted from there.

    >>> inside(((Span(0, 1), Span(6, 7)),), 5, 5)
    ((Span(first=1, last=2),),)
    """
    kept = (
        tuple(
            Span(span.first - start, span.last - start)
            for span in cluster
            if start <= span.first and span.last < start + count
        )
        for cluster in clusters
    )
    return tuple(cluster for cluster in kept if cluster)


def _fault(
    mention: Any, cluster: int, words: int, seen: dict[Span, int], where: str
) -> Fault | None:
    if not _is_span(mention) or not 0 <= mention[0] <= mention[1] < words:
        return Fault(
            f"{where} has the mention {mention}; a mention is [first, last], two of its {words} "
            "words counted from 0.",
            "mentions outside the text",
        )
    found = seen.get(Span(*mention))
    if found is None:
        return None
    if found == cluster:
        return Fault(f"{where} has the mention {mention} twice.", "mentions given twice")
    return Fault(
        f"{where} has the mention {mention} in two clusters; a mention means one thing.",
        "mentions in two clusters",
    )


def _is_span(mention: Any) -> bool:
    pair = isinstance(mention, Sequence) and len(mention) == 2
    return pair and all(type(place) is int for place in mention)


def _ordered(seen: dict[Span, int]) -> Clusters:
    found: dict[int, list[Span]] = {}
    for span, number in sorted(seen.items()):
        found.setdefault(number, []).append(span)
    return tuple(tuple(spans) for spans in found.values())
