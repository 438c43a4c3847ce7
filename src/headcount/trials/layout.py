"""Where a sequence and its repeat stand in a row of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """A sequence of `length` tokens, said twice, behind the special tokens of each side.

    >>> layout = Layout(3, {"target": 1})
    >>> layout.first("target"), layout.second("target")
    (slice(1, 4, None), slice(4, 7, None))
    """

    length: int
    #: How many tokens stand in front of it, by side ("source", "target").
    before: Mapping[str, int]

    def first(self, side: str) -> slice:
        """The places of the sequence."""
        start = self.before[side]
        return slice(start, start + self.length)

    def second(self, side: str) -> slice:
        """The places of the repeat."""
        start = self.before[side] + self.length
        return slice(start, start + self.length)

    def both(self, side: str) -> slice:
        """All places."""
        return slice(self.before[side], self.before[side] + 2 * self.length)
