"""The head table in a terminal: as many columns as fit, and a word on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from headcount.columns import NA
from headcount.heat import STEPS, heat_steps

if TYPE_CHECKING:
    from headcount.table import HeadTable

__all__ = ["TableText"]

#: Blanks between two columns.
_GAP = 2
_BOLD = Style(bold=True)

#: White ink on backgrounds from weak to strong, dark enough for it on any terminal.
_MORE = ("rgb(70,118,122)", "rgb(46,96,120)", "rgb(40,70,116)", "rgb(44,46,106)")
_LESS = ("rgb(134,98,78)", "rgb(142,80,52)", "rgb(140,60,32)", "rgb(120,40,18)")
_MORE_STYLES, _LESS_STYLES = (
    [None, *(Style(color="rgb(255,255,255)", bgcolor=shade) for shade in shades)]
    for shades in (_MORE, _LESS)
)


class TableText:
    """A table that rich prints, at the width of the terminal; made by `HeadTable.draw`."""

    def __init__(
        self,
        table: HeadTable,
        columns: Sequence[str] | None = None,
        *,
        heat: bool = True,
        intervals: bool = False,
        papers: bool = True,
    ) -> None:
        """Take columns by name, or those that were measured."""
        self.table = table
        self.heat = heat
        self.intervals = intervals
        self.papers = papers
        self.candidates = self._measured() if columns is None else list(columns)
        self._cells = {name: self._texts(name) for name in self.candidates}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, then what its columns mean and what it leaves out."""
        shown = self.fitting(options.max_width)
        # Text, never strings: rich would read a model named "[red]" as markup.
        yield Text(_printable(self._title()), style="bold")
        yield from self._grid(shown, console)
        for footnote in self._footnotes(shown):
            yield Text(_printable(footnote), style="dim")

    def fitting(self, width: int) -> list[str]:
        """The columns that fit into so many characters beside the heads' names; one at least."""
        room = width - self._label_width()
        shown: list[str] = []
        for name in self.candidates:
            room -= self._width(name) + _GAP
            if room < 0 and shown:
                break
            shown.append(name)
        return shown

    def _measured(self) -> list[str]:
        frame = self.table.frame
        return [name for name in self.table.names if frame[name].notna().any()]

    def _texts(self, name: str) -> list[str]:
        """Every value of a column as text, with its interval when asked for."""
        column, table = self.table.column(name), self.table
        texts = [_printable(column.show(value)) for value in table.frame[name]]
        if not self.intervals or name not in table.low or name not in table.high:
            return texts
        bounds = zip(
            map(column.show, table.low[name]), map(column.show, table.high[name]), strict=True
        )
        pairs = zip(texts, bounds, strict=True)
        return [NA if text == NA else f"{text} [{low}, {high}]" for text, (low, high) in pairs]

    def _width(self, name: str) -> int:
        """What a column needs: its widest value, and the longest word of its title."""
        words = [*self._heading_of(name).split(), *self._cells[name]]
        return max(cell_len(word) for word in words)

    def _heading_of(self, name: str) -> str:
        return _printable(self.table.column(name).title)

    def _grid(self, shown: list[str], console: Console) -> Iterator[Segment]:
        """A line for each head, and an empty one after each layer.

        The widths are known, so lines are set here: rich's own table would measure and wrap every
        cell, and take seconds for a thousand heads.
        """
        widths = [self._label_width(), *map(self._width, shown)]
        yield from self._heading(shown, widths, console)
        columns = [(self._cells[name], self._styles(name)) for name in shown]
        heads = self.table.heads
        for row, head in enumerate(heads):
            if row and heads[row - 1][:2] != head[:2]:
                yield Segment.line()
            yield Segment(str(head).ljust(widths[0]))
            for (texts, styles), width in zip(columns, widths[1:], strict=True):
                yield Segment(" " * _GAP)
                yield Segment(_right(texts[row], width), styles[row])
            yield Segment.line()

    def _heading(self, shown: list[str], widths: list[int], console: Console) -> Iterator[Segment]:
        """Titles, broken between words and standing on a rule."""
        titles = [Text("head"), *(Text(self._heading_of(name)) for name in shown)]
        broken = [title.wrap(console, width) for title, width in zip(titles, widths, strict=True)]
        height = max(len(lines) for lines in broken)
        for place in range(height):
            words = [_line(lines, place - height) for lines in broken]
            first, *rest = zip(words, widths, strict=True)
            cells = [first[0].ljust(first[1]), *(_right(word, width) for word, width in rest)]
            yield Segment((" " * _GAP).join(cells), _BOLD)
            yield Segment.line()
        yield Segment("─" * (sum(widths) + _GAP * len(shown)))
        yield Segment.line()

    def _label_width(self) -> int:
        return max(cell_len(str(head)) for head in [*self.table.heads, "head"])

    def _title(self) -> str:
        sizes = ", ".join(f"{name} {len(self.table.stack(name))}" for name in self.table.stacks)
        model = self.table.provenance.get("model")
        of = f" of {model}" if model else ""
        return f"{len(self.table)} heads{of}" + (f": {sizes}" if sizes else "")

    def _styles(self, name: str) -> list[Style | None]:
        """A background for each cell of a column of numbers."""
        values = self.table.frame[name]
        if not self.heat or not pd.api.types.is_numeric_dtype(values.dtype):
            return [None] * len(values)
        numbers = values.to_numpy(dtype="float64", na_value=np.nan)
        return [_style(step) for step in heat_steps(self.table.column(name), numbers)]

    def _footnotes(self, shown: list[str]) -> Iterator[str]:
        """What the columns mean, why values are missing, and what is not shown."""
        for name in shown:
            if meaning := self._meaning(name):
                yield meaning
        for note, names in self._reasons().items():
            yield f"{NA} {', '.join(self.table.column(name).title for name in names)}: {note}"
        hidden = [name for name in self.table.names if name not in shown]
        if hidden:
            columns = "column" if len(hidden) == 1 else "columns"
            yield f"{len(hidden)} more {columns} not shown: {', '.join(hidden)}"

    def _reasons(self) -> dict[str, list[str]]:
        """Each reason for missing values, with the columns it explains."""
        reasons: dict[str, list[str]] = {}
        for name, note in self.table.notes.items():
            reasons.setdefault(note, []).append(name)
        return reasons

    def _meaning(self, name: str) -> str:
        column = self.table.column(name)
        if not column.meaning:
            return ""
        unit = f" ({column.unit})" if column.unit else ""
        paper = f" [{column.paper}]" if column.paper and self.papers else ""
        return f"{column.title}{unit}: {column.meaning}{paper}"


def _style(step: int) -> Style | None:
    """A shade for strong values; weak ones stay as the terminal has them."""
    styles = _MORE_STYLES if step > 0 else _LESS_STYLES
    return styles[abs(step) * len(styles) // (STEPS + 1)]


def _printable(text: str) -> str:
    """Text that cannot move the cursor, change colours or turn the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else f"⟨{ord(sign):04x}⟩" for sign in text)


def _right(text: str, width: int) -> str:
    """Set against the right edge; some characters are two cells wide."""
    return " " * (width - cell_len(text)) + text


def _line(lines: Lines, place: int) -> str:
    """A line of a broken title, counted from the last; empty above the first."""
    return lines[place].plain.rstrip() if -place <= len(lines) else ""
