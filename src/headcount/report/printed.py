"""A number as people print it."""

from __future__ import annotations

__all__ = ["printed"]


def printed(value: float, spec: str = ".2f") -> str:
    """By a Python format, with a minus sign in place of a hyphen, as the page's script does.

    >>> printed(-0.214, "+.2g")
    '−0.21'
    """
    return format(value, spec).replace("-", "\N{MINUS SIGN}")
