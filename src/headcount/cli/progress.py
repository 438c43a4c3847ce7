"""Progress for people: on the error stream, and only where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

__all__ = ["bar", "bars", "told"]


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say what is going on while it goes on."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{escape(what)} ..."):
        yield


@contextmanager
def bar(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the time left; call it with what is done and the total."""
    with bars(unit) as update:
        yield lambda done, total: update(what, done, total)


@contextmanager
def bars(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each kind of work, as it begins: call it with its name, what is done, the total."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    begun: dict[str, TaskID] = {}

    def update(what: str, done: int, total: int) -> None:
        if what not in begun:
            begun[what] = shown.add_task(what, total=None)
        shown.update(begun[what], completed=done, total=total)

    with shown:
        yield update
