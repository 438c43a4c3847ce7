"""A story as it is told: a line a chapter with its state and its time, on the error stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from headcount.progress import Progress
    from headcount.stages.scene import Chapter
    from headcount.story import Told

__all__ = ["StoryDisplay"]

#: Columns of a title.
_WIDTH = 50
_SIGNS = {"done": ("✓", "green"), "kept": ("✓", "dim"), "left out": ("–", "yellow")}


class StoryDisplay:
    """Lines that stay, and one that moves; without a terminal only lines that stay."""

    def __init__(self, title: str, expected: str = "", console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, markup=False)
        self.title, self.expected = title, expected
        self.begun = monotonic()
        self._reasons: set[str] = set()
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)

    def __enter__(self) -> StoryDisplay:
        self.console.print(Text(self.title, style="bold"), soft_wrap=True)
        if self.expected:
            self.console.print(Text(self.expected, style="dim"))
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self._live.update(Text(""))
            self._live.stop()
        if error is None:
            self.console.print(Text(f"  all {_time(monotonic() - self.begun):>12}", style="dim"))

    @contextmanager
    def watch(self, chapter: Chapter) -> Iterator[Progress]:
        """The line of a chapter that is being told."""
        moving = _Moving(chapter.title)
        self._live.update(moving)
        yield moving.move
        self._live.update(Text(""))

    def ended(self, told: Told) -> None:
        """The line of a chapter that was told, kept or left out."""
        sign, style = _SIGNS[told.state]
        last = {"done": _time(told.seconds), "kept": "in the run", "left out": "not measured"}
        why = f"  {told.why}" if told.why not in ("", *self._reasons) else ""
        self._reasons.add(told.why)
        self.console.print(
            Text.assemble(
                (f"{sign} ", style),
                f"{told.title:<{_WIDTH}} ",
                (f"{last[told.state]:>12}", "" if told.state == "done" else "dim"),
                (why, "dim"),
            ),
            soft_wrap=True,
        )


class _Moving:
    """A spinner with the title, what is done, and the seconds so far."""

    def __init__(self, title: str) -> None:
        self.title, self.begun = title, monotonic()
        self.done, self.total = 0, 0
        self._spinner = Spinner("dots")

    def move(self, done: int, total: int) -> None:
        """Take in how far the work is."""
        self.done, self.total = done, total

    def __rich__(self) -> Table:
        line = Table.grid(padding=(0, 1))
        share = f"{100 * self.done / self.total:3.0f} %" if self.total else ""
        spent = f"{_time(monotonic() - self.begun):>12}"
        line.add_row(
            self._spinner, Text(f"{self.title:<{_WIDTH}}"), Text(spent), Text(share, "dim")
        )
        return line


def _time(seconds: float) -> str:
    """Seconds as people read them.

    >>> _time(7.25), _time(200)
    ('7.2 s', '3 min 20 s')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
