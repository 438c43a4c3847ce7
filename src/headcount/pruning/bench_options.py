"""What a timing may be asked for: told before a model is loaded, and again before it is run."""

from __future__ import annotations

from typing import Literal, get_args

from headcount.errors import UsageError

__all__ = ["LEAST", "WAYS", "Way", "check_pairs", "check_share", "check_way_name"]

Way = Literal["plain", "graph", "compile"]
WAYS: tuple[Way, ...] = get_args(Way)

#: Pairs below which the median has no interval at 95%.
LEAST = 6


def check_pairs(pairs: int) -> None:
    """Refuse fewer pairs than an interval of the median needs.

    >>> check_pairs(5)
    Traceback (most recent call last):
    headcount.errors.UsageError: 5 pairs give no interval; take 6 or more.
    """
    if pairs < LEAST:
        raise UsageError(f"{pairs} pairs give no interval; take {LEAST} or more.")


def check_way_name(way: str) -> None:
    """Refuse a way of running that does not exist."""
    if way not in WAYS:
        raise UsageError(f"There is no way '{way}' to run a forward; choose {', '.join(WAYS)}.")


def check_share(share: float) -> None:
    """Refuse a share of heads that leaves none, or takes none."""
    if not 0 < share < 1:
        raise UsageError(f"The share of heads is {share:g}; give a number between 0 and 1.")
