"""What an object shows in a notebook: a few rows, and a "more" that opens."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.records import (
    MATTERS,
    MOST_LETTERS,
    NA,
    STEPS,
    HeadTable,
    column_steps,
    plain_figure,
    telling_first,
)

#: Rows, columns and letters of a cell that are seen before "more" is opened.
_FEW_ROWS, _FEW_COLUMNS, _FEW_LETTERS = 10, 8, 50
#: The most rows that "more" opens.
_MOST_ROWS = 2_000


#: Names of rows; of each column its title, its tooltip, and cells: text, shade, tooltip.
Grid = tuple[list[str], dict[str, tuple[str, str, list[tuple[str, int, str]]]]]


def brief_html(text: str, rows: HeadTable | pd.DataFrame | None) -> str:
    """The first line of a text and the rows below it; the meaning of a column is a tooltip."""
    if rows is None:
        return f'<pre style="white-space:pre-wrap">{escape(text[:MOST_LETTERS])}</pre>'
    labels, columns = _frame_grid(rows) if isinstance(rows, pd.DataFrame) else _table_grid(rows)
    few = _first_rows(rows, len(labels))
    names = [name for name, (*_, cells) in columns.items() if any(one[0] != NA for one in cells)]
    hidden = len(few) < len(labels) or len(columns) > _FEW_COLUMNS
    hidden |= any(len(c[2][row][0]) > _FEW_LETTERS for c in columns.values() for row in few)
    names = names[:_FEW_COLUMNS] if hidden else list(columns)
    sizes = [sum(min(len(columns[n][2][r][0]), _FEW_LETTERS) for n in names) for r in few]
    few = few[: max(1, int((np.cumsum(sizes) < MOST_LETTERS * 2 // 3).sum()))]
    return template(__file__, "brief.html").render(
        caption=text.partition("\n")[0][:300],
        labels=labels,
        columns=columns,
        names=names,
        few=few,
        letters=_FEW_LETTERS,
        more=range(min(len(labels), _MOST_ROWS)) if hidden else None,
        shades=[(step, f"{step * 0.05:.2f}") for step in range(1, STEPS + 1)],
    )


def _table_grid(table: HeadTable) -> Grid:
    """Heads, and each column's tooltip with its cells: text, shade, tooltip."""
    columns = {}
    for name in telling_first(table):
        column, why = table.column(name), table.notes.get(name, "")
        parts = [column.name, column.meaning, column.unit, column.paper, why]
        texts = [column.show(value) for value in table.frame[name]]
        cells = [
            (text, step, (why or "not measured") if text == NA else "")
            for text, step in zip(texts, column_steps(table, name), strict=True)
        ]
        columns[name] = (column.title, " · ".join(filter(None, parts)), cells)
    return [str(head) for head in table.heads], columns


def _frame_grid(frame: pd.DataFrame) -> Grid:
    labels = [
        ".".join(map(str, row)) if isinstance(row, tuple) else str(row) for row in frame.index
    ]
    texts = {str(name): [plain_figure(value) or NA for value in frame[name]] for name in frame}
    return labels, {n: (n, "", [(text, 0, "") for text in each]) for n, each in texts.items()}


def _first_rows(rows: HeadTable | pd.DataFrame, n: int) -> list[int]:
    """The rows seen first: heads with a role, or those that matter most; else the first."""
    if isinstance(rows, pd.DataFrame) or n <= _FEW_ROWS:
        return list(range(min(n, _FEW_ROWS)))
    by = [name for name in telling_first(rows) if rows.column(name).group == MATTERS][:1]
    heads = rows.heads
    wanted = [heads.index(head) for name in by for head in rows.rank(name)]
    if "role" in rows.names:
        wanted = np.flatnonzero(rows.frame["role"].notna()).tolist()
    return (wanted or list(range(n)))[:_FEW_ROWS]


@cache
def template(beside: str, name: str) -> Any:
    """The template of this name beside a module, for HTML: whatever is put in is escaped."""
    from jinja2 import Environment

    text = Path(beside).with_name(name).read_text(encoding="utf8")
    return Environment(autoescape=True).from_string(text.replace("\n", ""))
