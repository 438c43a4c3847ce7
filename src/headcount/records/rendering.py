"""The head table in a terminal, what objects show in a notebook, and tokens as people read them.

Whatever a model or a text brings (names, tokens) is made printable or escaped; no script is used.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from headcount import plugins
from headcount.errors import printable
from headcount.records.columns import NA, STEPS, heat_steps, is_p

if TYPE_CHECKING:
    from headcount.records.table import HeadTable


# --- What an object shows in a notebook ---------------------------------------------------------

#: The most letters that an object prints.
MOST_LETTERS = 1_900


class Brief:
    """An object that shows itself: a text, a few rows in a notebook, and a "more" that opens.

    >>> class Rates(Brief):
    ...     def in_brief(self):
    ...         return "2 rates, p 0.1", pd.DataFrame({"rate": [0.25, 1]}, index=["a", "b"])
    >>> Rates()
    2 rates, p 0.1
    >>> Rates()._repr_html_().count("<tr")
    3
    """

    def in_brief(self) -> tuple[str, HeadTable | pd.DataFrame | None]:
        """What it prints, and the rows behind that."""
        raise NotImplementedError

    def __repr__(self) -> str:
        text = self.in_brief()[0]
        return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} ..."

    def _repr_html_(self) -> str | None:
        html = plugins.part("notebook")
        return None if html is None else str(html(*self.in_brief()))


class Drawn:
    """What rich draws, drawn by `print` and in a notebook too."""

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=100, color_system=None)
        with console.capture() as caught:
            console.print(self)
        return printable(caught.get().rstrip("\n"), keep="\n")

    __repr__ = __str__


def plain_figure(value: Any) -> str:
    """A value as tables print it; nothing where there is none.

    >>> plain_figure(0.12345), plain_figure(1e-9), plain_figure(3.0), plain_figure(float("nan"))
    ('0.123', '1e-09', '3', '')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        value += 0.0  # no minus before 0
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.2g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- The head table in a terminal ---------------------------------------------------------------

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


class TableText(Drawn):
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
        measured = [name for name in telling_first(table) if table.frame[name].notna().any()]
        self.candidates = measured if columns is None else list(columns)
        self._cells = {name: self._texts(name) for name in self.candidates}
        self._titles = {name: _printable(table.column(name).title) for name in self.candidates}
        self._label_width = max(cell_len(str(head)) for head in [*table.heads, "head"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, then what its columns mean and what it leaves out."""
        shown = self.fitting(options.max_width)
        sizes = ", ".join(f"{name} {len(self.table.stack(name))}" for name in self.table.stacks)
        title = self.table.in_brief()[0] + (f": {sizes}" if sizes else "")
        # Text, never strings: rich would read a model named "[red]" as markup.
        yield Text(_printable(title), style="bold")
        yield from self._grid(shown, console)
        for footnote in self._footnotes(shown):
            yield Text(_printable(footnote), style="dim")

    def fitting(self, width: int) -> list[str]:
        """The columns that fit into a width next to the heads' names; one at least."""
        room = width - self._label_width
        shown: list[str] = []
        for name in self.candidates:
            room -= self._width(name) + _GAP
            if room < 0 and shown:
                break
            shown.append(name)
        return shown

    def _texts(self, name: str) -> list[str]:
        """Every value of a column as text, with its interval when asked for."""
        column, table = self.table.column(name), self.table
        texts = [_printable(column.show(value)) for value in table.frame[name]]
        if not self.intervals or name not in table.low or name not in table.high:
            return texts
        rows = zip(texts, table.low[name], table.high[name], strict=True)
        return [
            NA if text == NA else f"{text} [{column.show(low)}, {column.show(high)}]"
            for text, low, high in rows
        ]

    def _width(self, name: str) -> int:
        """What a column needs: its widest value, and the longest word of its title."""
        return max(map(cell_len, [*self._titles[name].split(), *self._cells[name]]))

    def _grid(self, shown: list[str], console: Console) -> Iterator[Segment]:
        """A line for each head, and an empty one after each layer.

        The widths are known, so lines are set here: rich's own table would measure and wrap every
        cell, and take seconds for a thousand heads.
        """
        widths = [self._label_width, *map(self._width, shown)]
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
        titles = [Text("head"), *(Text(self._titles[name]) for name in shown)]
        broken = [title.wrap(console, width) for title, width in zip(titles, widths, strict=True)]
        for above in range(max(map(len, broken)), 0, -1):  # lines above the rule
            words = [
                lines[-above].plain.rstrip() if above <= len(lines) else "" for lines in broken
            ]
            first, *rest = zip(words, widths, strict=True)
            cells = [first[0].ljust(first[1]), *(_right(word, width) for word, width in rest)]
            yield Segment((" " * _GAP).join(cells), _BOLD)
            yield Segment.line()
        yield Segment("─" * (sum(widths) + _GAP * len(shown)))
        yield Segment.line()

    def _styles(self, name: str) -> list[Style | None]:
        """A background for strong values; weak ones stay as the terminal has them."""
        styles = []
        for step in column_steps(self.table, name) if self.heat else [0] * len(self.table):
            shades = _MORE_STYLES if step > 0 else _LESS_STYLES
            styles.append(shades[abs(step) * len(shades) // (STEPS + 1)])
        return styles

    def _footnotes(self, shown: list[str]) -> Iterator[str]:
        """What the columns mean, why values are missing, and what is not shown."""
        for column in map(self.table.column, shown):
            if column.meaning:
                unit = f" ({column.unit})" if column.unit else ""
                paper = f" [{column.paper}]" if column.paper and self.papers else ""
                yield f"{column.title}{unit}: {column.meaning}{paper}"
        reasons: dict[str, list[str]] = {}
        for name, note in self.table.notes.items():
            reasons.setdefault(note, []).append(self.table.column(name).title)
        for note, titles in reasons.items():
            yield f"{NA} {', '.join(titles)}: {note}"
        hidden = [name for name in self.table.names if name not in shown]
        if hidden:
            columns = "column" if len(hidden) == 1 else "columns"
            yield f"{len(hidden)} more {columns} not shown: {', '.join(hidden)}"


#: The group of the columns that say how much a head matters.
MATTERS = "How much it matters"


def telling_first(table: HeadTable) -> list[str]:
    """The columns in the order of interest: what a head does, how much it matters, all others.

    >>> from headcount.records import Column, Head, HeadTable
    >>> columns = [Column("gradient", group="How much it matters")]
    >>> values = {"self": [0.1], "gradient": [2.0], "role": ["sink"]}
    >>> telling_first(HeadTable.of([Head("enc", 0, 0)], values, columns))
    ['role', 'gradient', 'self']
    """

    def rank(name: str) -> int:
        if name == "role":
            return 0
        return 1 if table.column(name).group == MATTERS and not is_p(name) else 2

    return sorted(table.names, key=rank)


def column_steps(table: HeadTable, name: str) -> list[int]:
    """How strongly each cell of a column is shaded; words are not."""
    values = table.frame[name]
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return [0] * len(values)
    return heat_steps(table.column(name), values.to_numpy(dtype="float64", na_value=np.nan))


def _printable(text: str) -> str:
    """Text that cannot move the cursor, change colours or turn the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else f"⟨{ord(sign):04x}⟩" for sign in text)


def _right(text: str, width: int) -> str:
    """Set against the right edge; some characters are two cells wide."""
    return " " * (width - cell_len(text)) + text
