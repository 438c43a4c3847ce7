"""Results on standard output: text for people, JSON for machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from headcount.table import HeadTable

__all__ = ["WORTH_SEEING", "output", "print_json", "print_notes", "print_table"]

#: Columns that people see unless they choose, in the order in which a narrow terminal drops
#: them, the last ones first; they stand in the order of the table.
WORTH_SEEING = (
    "confidence",
    "entropy",
    "best_offset",
    "best_offset_share",
    "previous",
    "next",
    "separator",
    "first",
    "self",
    "punctuation",
)


def output() -> Console:
    """Where results go; nothing in them is taken for markup."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would call it a failure; see main.py

    return Output(highlight=False, markup=False, emoji=False)


def print_json(what: dict[str, Any]) -> None:
    """Print strict JSON."""
    from headcount.exact_json import encode

    typer.echo(encode(what))


def print_table(table: HeadTable, columns: Iterable[str] | None = None) -> None:
    """Print a table: the columns asked for, or those worth seeing, as far as they fit."""
    console = output()
    chosen = list(columns) if columns is not None else _worth_seeing(table, console.width)
    console.print(table.draw(chosen or None, papers=False))


def _worth_seeing(table: HeadTable, width: int) -> list[str]:
    measured = [name for name in WORTH_SEEING if name in table.names]
    measured = [name for name in measured if table.frame[name].notna().any()]
    fitting = table.draw(measured).fitting(width) if measured else []
    return [name for name in table.names if name in fitting]


def print_notes(notes: Iterable[str]) -> None:
    """Print what the reader of the figures should know."""
    from rich.text import Text

    console = output()
    for note in notes:
        console.print(Text.assemble(("Note: ", "yellow"), note))
