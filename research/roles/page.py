"""Fill the tables of docs/results/roles.md; the words between them are written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from research.nulls.page import false_table, ladder_table
from research.pages import with_tables

from .tables import TABLES

__all__ = ["filled"]


def filled(page: str, surveys: Mapping[str, Any]) -> str:
    """The page with every table made again.

    >>> filled("<!-- table: sizes -->\\nold\\n<!-- end -->", {}).splitlines()[2:4]
    ['| survey | model | corpus | texts | words | twin |', '| --- | --- | --- | --- | --- | --- |']
    """
    made = TABLES | {"ladder": lambda _: ladder_table(), "false": lambda _: false_table()}
    return with_tables(page, lambda name: made[name](dict(surveys)))
