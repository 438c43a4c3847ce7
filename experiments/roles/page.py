"""Fill the tables of docs/results/roles.md; the words between them are written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .tables import TABLES

__all__ = ["filled"]

_PLACE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str, surveys: Mapping[str, Any]) -> str:
    """The page with every table made again.

    >>> filled("<!-- table: sizes -->\\nold\\n<!-- end -->", {}).splitlines()[2:4]
    ['| survey | model | corpus | texts | words | twin |', '| --- | --- | --- | --- | --- | --- |']
    """

    def fill(place: re.Match[str]) -> str:
        made = TABLES[place[1]](dict(surveys))
        return f"<!-- table: {place[1]} -->\n\n{made}\n\n<!-- end -->"

    return _PLACE.sub(fill, page)
