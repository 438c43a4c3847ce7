"""Kinds of tokens that a mass can be asked for."""

from __future__ import annotations

from torch import Tensor

from headcount.text.side import Side

__all__ = ["CLASSES", "of_class"]

#: `stops` are exactly "." and ","; `first` is the first real token, whatever it is.
CLASSES = ("first", "separator", "special", "punctuation", "stops")


def of_class(side: Side, name: str) -> Tensor:
    """True at the real tokens of a class, `[batch, token]`."""
    if name == "first":
        return side.real & (side.real.cumsum(-1) == 1)
    members: Tensor = getattr(side, name)
    return members & side.real
