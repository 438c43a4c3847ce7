"""What the terminal shows: results as text or JSON on standard output, progress on the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

import headcount as hc
from headcount.errors import printable

if TYPE_CHECKING:
    from rich import progress as rich


# --- Results ------------------------------------------------------------------------------------


class Terminal(Console):
    """The only way to the terminal beside `echo`: text from outside cannot steer it.

    Whatever rich draws (lines, tables, bars) passes `render`, where control characters of the
    text are spelled out; colours and movements are rich's own and no text.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        """A text from outside, before it is measured and broken into lines."""
        return super().render_str(printable(text, keep="\n"), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """What is printed, piece by piece."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text, "\n"))

    def on_broken_pipe(self) -> None:
        """Leave it to main.py: rich would call it a failure."""
        raise BrokenPipeError


def output() -> Terminal:
    """Where results go."""
    return Terminal()


def echo(text: str, err: bool = False) -> None:
    """Print text as it is, at any width, but for what could steer a terminal."""
    typer.echo(printable(text, keep="\n"), err=err)


def print_json(what: dict[str, Any]) -> None:
    """Print strict JSON, which escapes control characters."""
    from headcount.records import json_encode

    echo(json_encode(what))


def print_rows(
    titles: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()
) -> None:
    """Print rows under their titles; the columns named in `right` align to the right."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    shown = list(rows)
    for place, title in enumerate(titles):
        numbers, wide = title in right, None
        if title == "head":  # what is asked for is never cut
            wide = max((len(str(row[place])) for row in shown if row[place:]), default=None)
        justify: JustifyMethod = "right" if numbers else "left"
        table.add_column(title, justify=justify, no_wrap=numbers or bool(wide), min_width=wide)
    for row in shown:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    output().print(table)


def print_notes(notes: Iterable[str]) -> None:
    """Print what the reader of the figures should know."""
    console = output()
    for note in notes:
        console.print(Text.assemble(("Note: ", "yellow"), printable(note)))


def print_run(out: Path | None) -> None:
    """Name the run directory that was written, where there is one."""
    if out is not None:
        output().print(f"Wrote {out}/ (headcount ls {out} lists what it holds).")


# --- Progress -----------------------------------------------------------------------------------


def say(sentence: str) -> None:
    """A sentence before long work, on the standard error."""
    echo(printable(sentence), err=True)


@contextmanager
def status(what: str) -> Iterator[None]:
    """Show what is running, while it runs."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(f"{printable(what)} ...")):
        yield


#: Seconds after which a command that works is heard of.
_SILENCE = 30.0


class TerminalProgress:
    """A bar for each work under way, with the time left.

    Where nobody watches a terminal (a log, a pipe), a line twice a minute says how far it is.
    """

    def __init__(self) -> None:
        self.console = Terminal(stderr=True)
        self._told = monotonic()
        self._open: list[list[Any]] = []
        self._shown: rich.Progress | None = None

    def start(self, total: int, title: str) -> None:
        """A bar of its own."""
        task = None
        if self.console.is_terminal:
            self._shown = self._shown or self._bars()
            task = self._shown.add_task(title, total=total or None)
        self._open.append([title, total, 0, task])

    def advance(self, n: int = 1) -> None:
        """Move the bar of the work that began last."""
        work = self._open[-1]
        work[2] += n
        if self._shown is not None:
            self._shown.update(work[3], completed=work[2])
        elif monotonic() - self._told >= _SILENCE:
            of = f" of {work[1]:,}" if work[1] else ""
            self.console.print(f"{work[0]}: {work[2]:,}{of}", soft_wrap=True)
            self._told = monotonic()

    def done(self) -> None:
        """Remove the bar; with the last one the display stops."""
        task = self._open.pop()[3]
        if self._shown is not None:
            self._shown.refresh()  # the last parts too, however quick they were
            self._shown.remove_task(task)
            if not self._open:
                self._shown.stop()
                self._shown = None

    def say(self, what: object) -> None:
        """A sentence before long work."""
        say(str(what))

    def _bars(self) -> rich.Progress:
        from rich import progress as rich

        shown = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("left"),
            console=self.console,
            transient=True,
        )
        shown.start()
        return shown


# --- The stages of a story, line by line --------------------------------------------------------

#: Columns of a title.
_WIDTH = 50
_SIGNS = {"done": ("✓", "green"), "kept": ("✓", "dim"), "left out": ("–", "yellow")}


class StoryDisplay(TerminalProgress):
    """A line for each stage that ended, and on a terminal bars for what is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: float | None = None
        self._reasons: set[str] = set()

    def __enter__(self) -> StoryDisplay:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self.begun is not None:
            self.console.print(Text(f"  all {_time(monotonic() - self.begun):>12}", style="dim"))

    def say(self, what: object) -> None:
        """The model, then how long it will take; and the line of a stage that ended."""
        if isinstance(what, str):
            style = "bold" if self.begun is None else "dim"
            self.begun = self.begun or monotonic()
            self.console.print(Text(what, style=style), soft_wrap=True)
            return
        status: Any = what
        sign, style = _SIGNS[status.state]
        last = {"done": _time(status.seconds), "kept": "in the run", "left out": "not measured"}
        why = f"  {status.why}" if status.why not in ("", *self._reasons) else ""
        self._reasons.add(status.why)
        self.console.print(
            Text.assemble(
                (f"{sign} ", style),
                f"{status.title:<{_WIDTH}} ",
                (f"{last[status.state]:>12}", "" if status.state == "done" else "dim"),
                (why, "dim"),
            ),
            soft_wrap=True,
        )


def _time(seconds: float) -> str:
    """Seconds as people read them.

    >>> _time(7.25), _time(200)
    ('7.2 s', '3 min 20 s')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


# --- Scores of heads at a glance ----------------------------------------------------------------

#: So many heads are shown at either end.
ENDS = 5
#: Above it, chance could have done it.
LEVEL = 0.05


def print_ranking(table: hc.HeadTable, name: str) -> None:
    """The first and the last heads by one score, and where the first tenth of them is."""
    console, column, order = output(), table.column(name), _order(table, name)
    console.print(f"{column.title}. {column.meaning}")
    rows = [
        [str(place), *_row(table, name, head, len(order) < len(table))]
        for place, head in enumerate(order, 1)
    ]
    if len(rows) > 2 * ENDS:
        rows[ENDS:-ENDS] = [["..."]]
    print_rows(("", "head", name, "95%"), rows, right=("", name))
    for line in _lines(table, name):
        console.print(line, style="dim")


def _order(table: hc.HeadTable, name: str) -> list[hc.Head]:
    """Heads from the first to the last; one for each layer where a layer has one value."""
    order = table.rank(name)
    layers = table.frame[name].groupby(level=["stack", "layer"]).nunique()
    if layers.gt(1).any() or len(layers) == len(order):
        return order
    return list({(head.stack, head.layer): head for head in order}.values())


def _row(table: hc.HeadTable, name: str, head: hc.Head, layer: bool) -> list[str]:
    values, column = table.head(head), table.column(name)
    low, high = (values.get(f"{name}_{end}") for end in ("low", "high"))
    between = "" if low is None else f"[{column.show(low)}, {column.show(high)}]"
    called = f"{head.stack}.{head.layer}" if layer else str(head)
    return [called, column.show(values[name]), between]


def _lines(table: hc.HeadTable, name: str) -> Iterator[str]:
    """What the ranking says about stacks, and about chance."""
    order = table.rank(name)
    if len(table.stacks) > 1 and len(order) >= 2 * ENDS:
        top = order[: max(1, len(order) // 10)]
        yield f"The first tenth, {len(top)} heads: {_by_stack(top, table)}."
    if f"{name}_p_adjusted" in table.names:
        yield from _significant(table, name)
    if name in table.notes:
        yield f"{table.column(name).title}: {table.notes[name]}."


def _significant(table: hc.HeadTable, name: str) -> Iterator[str]:
    """How many heads (or layers, where they have one value) matter or stand in the way."""
    p, cost = (table.numbers(column) for column in (f"{name}_p_adjusted", name))
    asked = _order(table, name)
    known = {head: (p[row], cost[row]) for row, head in enumerate(table.heads)}
    sure = [head for head in asked if known[head][0] < LEVEL]
    worse = {head for head in sure if known[head][1] > 0}
    what = " layers" if len(asked) < len(table.rank(name)) else ""
    for deed, heads in (
        ("cost something", [head for head in sure if head in worse]),
        ("are better gone", [head for head in sure if head not in worse]),
    ):
        where = f": {_by_stack(heads, table)}" if heads and len(table.stacks) > 1 else ""
        of = len(asked) if what else len(table)
        yield f"{len(heads)} of {of}{what} {deed} (p < {LEVEL} after Holm){where}."


def _by_stack(heads: Sequence[hc.Head], table: hc.HeadTable) -> str:
    return ", ".join(f"{stack} {sum(h.stack == stack for h in heads)}" for stack in table.stacks)
