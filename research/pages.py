"""Tables of the pages in docs/results: made from JSON, put between marks in a text."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["with_tables"]

_PLACE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def with_tables(page: str, made: Callable[[str], str]) -> str:
    """The page with what lies between every pair of marks made again, by the name in the mark.

    >>> print(with_tables("<!-- table: sizes -->\\nold\\n<!-- end -->", "| {} |".format))
    <!-- table: sizes -->
    <BLANKLINE>
    | sizes |
    <BLANKLINE>
    <!-- end -->
    """
    return _PLACE.sub(
        lambda place: f"<!-- table: {place[1]} -->\n\n{made(place[1])}\n\n<!-- end -->", page
    )
