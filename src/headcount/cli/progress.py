"""Progress for people: on the error stream, and only where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["bar", "err_console", "out_console", "told"]


def err_console() -> Console:
    """Where progress and errors go, so that standard output stays clean."""
    return Console(stderr=True)


def out_console() -> Console:
    """Where results go."""
    return Console(highlight=False)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say what is going on while it goes on."""
    console = err_console()
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


@contextmanager
def bar(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the time left; call it with what is done and the total."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=err_console(),
        transient=True,
        disable=not err_console().is_terminal,
    )
    with shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
