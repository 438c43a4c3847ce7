"""What tallies ask of an attention map, declared ahead so that nothing else is computed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Needs"]


@dataclass(frozen=True)
class Needs:
    """Row quantities of a map `[batch, head, query, key]`; a union serves several tallies.

    Only `maps` keeps the map itself; everything else is one number a row, so that a fused
    kernel can serve it without a map and without a change in any tally.

    `tops` asks for the largest weight of each row, once for every set of key classes that
    is left out (`frozenset({"separator"})`); `masses` for the mass on a class; `offsets` for
    the weight at query + offset; `smoothed` for the entropy after Clark's smoothing.

    >>> (Needs(entropy=True) | Needs(offsets=frozenset({-1}))).offsets
    frozenset({-1})
    """

    maps: bool = False
    entropy: bool = False
    smoothed: float | None = None
    tops: frozenset[frozenset[str]] = frozenset()
    masses: frozenset[str] = frozenset()
    offsets: frozenset[int] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        if None not in (self.smoothed, other.smoothed) and self.smoothed != other.smoothed:
            raise ValueError("two tallies ask for entropies of different smoothing")
        return Needs(
            maps=self.maps or other.maps,
            entropy=self.entropy or other.entropy,
            smoothed=other.smoothed if self.smoothed is None else self.smoothed,
            tops=self.tops | other.tops,
            masses=self.masses | other.masses,
            offsets=self.offsets | other.offsets,
        )
