"""Ctrl-C in the middle of a score: what was measured so far goes along."""

from __future__ import annotations

from headcount.table import HeadTable

__all__ = ["Interrupted"]


class Interrupted(KeyboardInterrupt):
    """The user broke a score off; `table` holds what there is, and its notes say how much.

    >>> from headcount.heads import Head
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"gradient": [0.5]})
    >>> Interrupted(table).table.names
    ['gradient']
    """

    def __init__(self, table: HeadTable, message: str = "") -> None:
        super().__init__(message)
        self.table = table
