"""The head table in a terminal: as many columns as fit, and a word on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headcount.columns import NA
from headcount.heat import STEPS, heat_steps

if TYPE_CHECKING:
    from headcount.table import HeadTable

__all__ = ["TableText"]

#: Between two columns: a blank behind the first, and the place of a vertical line.
_GAP = 2

#: Backgrounds from weak to strong, dark enough for white ink on any terminal.
_MORE = ("rgb(70,118,122)", "rgb(46,96,120)", "rgb(40,70,116)", "rgb(44,46,106)")
_LESS = ("rgb(134,98,78)", "rgb(142,80,52)", "rgb(140,60,32)", "rgb(120,40,18)")


class TableText:
    """A table that rich prints, at the width of the terminal; made by `HeadTable.draw`."""

    def __init__(
        self,
        table: HeadTable,
        columns: Sequence[str] | None = None,
        *,
        heat: bool = True,
        intervals: bool = False,
    ) -> None:
        """Take columns by name, or those that were measured."""
        self.table = table
        self.heat = heat
        self.intervals = intervals
        self.candidates = self._measured() if columns is None else list(columns)
        self._cells = {name: self._texts(name) for name in self.candidates}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, then what its columns mean and what it leaves out."""
        shown = self.fitting(options.max_width)
        # Text, never strings: rich would read a model named "[red]" as markup.
        yield Text(self._title(), style="bold")
        yield self._grid(shown)
        for footnote in self._footnotes(shown):
            yield Text(footnote, style="dim")

    def fitting(self, width: int) -> list[str]:
        """The columns that fit into so many characters beside the heads' names; one at least."""
        room = width - max(cell_len(str(head)) for head in [*self.table.heads, "head"])
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
        texts = [column.show(value) for value in table.frame[name]]
        if not self.intervals or name not in table.low or name not in table.high:
            return texts
        bounds = zip(
            map(column.show, table.low[name]), map(column.show, table.high[name]), strict=True
        )
        pairs = zip(texts, bounds, strict=True)
        return [NA if text == NA else f"{text} [{low}, {high}]" for text, (low, high) in pairs]

    def _width(self, name: str) -> int:
        """What a column needs: its widest value, and the longest word of its title."""
        words = [*self.table.column(name).title.split(), *self._cells[name]]
        return max(cell_len(word) for word in words)

    def _grid(self, shown: list[str]) -> Table:
        """One row per head, a rule after each layer."""
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        grid.add_column("head", no_wrap=True)
        for name in shown:
            title = Text(self.table.column(name).title)
            grid.add_column(title, justify="right", width=self._width(name))
        styles = {name: self._styles(name) for name in shown}
        for row, head in enumerate(self.table.heads):
            cells = [Text(self._cells[name][row], style=styles[name][row]) for name in shown]
            grid.add_row(Text(str(head)), *cells, end_section=self._ends_layer(row))
        return grid

    def _ends_layer(self, row: int) -> bool:
        index = self.table.frame.index
        return row + 1 < len(index) and index[row][:2] != index[row + 1][:2]

    def _title(self) -> str:
        sizes = ", ".join(f"{name} {len(self.table.stack(name))}" for name in self.table.stacks)
        model = self.table.provenance.get("model")
        of = f" of {model}" if model else ""
        return f"{len(self.table)} heads{of}" + (f": {sizes}" if sizes else "")

    def _styles(self, name: str) -> list[str]:
        """A background for each cell of a column of numbers."""
        values = self.table.frame[name]
        if not self.heat or not pd.api.types.is_numeric_dtype(values.dtype):
            return [""] * len(values)
        numbers = values.to_numpy(dtype="float64", na_value=np.nan)
        return [_style(step) for step in heat_steps(self.table.column(name), numbers)]

    def _footnotes(self, shown: list[str]) -> Iterator[str]:
        """What the columns mean, why values are missing, and what is not shown."""
        for name in shown:
            if meaning := self._meaning(name):
                yield meaning
        for name, note in self.table.notes.items():
            yield f"{NA} {self.table.column(name).title}: {note}"
        hidden = [name for name in self.table.names if name not in shown]
        if hidden:
            columns = "column" if len(hidden) == 1 else "columns"
            yield f"{len(hidden)} more {columns} not shown: {', '.join(hidden)}"

    def _meaning(self, name: str) -> str:
        column = self.table.column(name)
        if not column.meaning:
            return ""
        unit = f" ({column.unit})" if column.unit else ""
        paper = f" [{column.paper}]" if column.paper else ""
        return f"{column.title}{unit}: {column.meaning}{paper}"


def _style(step: int) -> str:
    """White ink on a shade; weak values stay as the terminal has them."""
    shades = _MORE if step > 0 else _LESS
    strength = (abs(step) * (len(shades) + 1)) // (STEPS + 1)
    return f"rgb(255,255,255) on {shades[strength - 1]}" if strength else ""
