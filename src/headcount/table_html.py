"""The head table in a notebook: a plain table, every string escaped, no script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.columns import NA
from headcount.heat import STEPS, heat_steps

if TYPE_CHECKING:
    from headcount.table import HeadTable

__all__ = ["table_html"]

# Shades are half transparent, so that the page's own ink stays readable on light and dark alike.
_SHADES = "".join(
    f".headcount-table td.m{step}{{background:rgba(20,130,140,{step * 0.05:.2f})}}"
    f".headcount-table td.l{step}{{background:rgba(190,90,30,{step * 0.05:.2f})}}"
    for step in range(1, STEPS + 1)
)
_GROUND = "var(--jp-layout-color0,var(--vscode-editor-background,Canvas))"
_STYLE = (
    ".headcount-table{max-height:36em;overflow:auto;font-variant-numeric:tabular-nums}"
    ".headcount-table table{border-collapse:collapse;font-size:12px;margin:0}"
    ".headcount-table tr{background:none!important}"  # notebooks stripe rows, and shades lie on it
    ".headcount-table th,.headcount-table td"
    "{padding:2px 8px;text-align:right;border:0;background:none;color:inherit}"
    ".headcount-table th[scope=row]{text-align:left;font-family:monospace;font-weight:normal;"
    f"position:sticky;left:0;background:{_GROUND}}}"
    f".headcount-table thead th{{position:sticky;top:0;z-index:1;background:{_GROUND}}}"
    ".headcount-table tr.layer>*{border-top:1px solid rgba(128,128,128,.4)}" + _SHADES
)


def table_html(table: HeadTable) -> str:
    """The whole table; a column's meaning and the reason of a dash are in tooltips."""
    return (
        f'<div class="headcount-table"><style>{_STYLE}</style><table>'
        f"<caption>{escape(_caption(table))}</caption>"
        f"<thead><tr><th>head</th>{''.join(_headings(table))}</tr></thead>"
        f"<tbody>{''.join(_rows(table))}</tbody></table></div>"
    )


def _caption(table: HeadTable) -> str:
    model = table.provenance.get("model")
    return f"{len(table)} heads" + (f" of {model}" if model else "")


def _headings(table: HeadTable) -> Iterator[str]:
    for name in table.names:
        column = table.column(name)
        parts = [column.name, column.meaning, column.unit, column.paper, table.notes.get(name, "")]
        tooltip = escape(" · ".join(part for part in parts if part))
        yield f'<th title="{tooltip}">{escape(column.title)}</th>'


def _rows(table: HeadTable) -> Iterator[str]:
    cells = [list(_cells(table, name)) for name in table.names]
    layer = None
    for row, head in enumerate(table.heads):
        opening = "<tr>" if head[:2] == layer else '<tr class="layer">'
        layer = head[:2]
        yield f'{opening}<th scope="row">{escape(str(head))}</th>'
        yield "".join(column[row] for column in cells) + "</tr>"


def _cells(table: HeadTable, name: str) -> Iterator[str]:
    """A column's cells: shaded numbers, words, and dashes that say why."""
    column, values = table.column(name), table.frame[name]
    steps = [0] * len(values)
    if pd.api.types.is_numeric_dtype(values.dtype):
        steps = heat_steps(column, values.to_numpy(dtype="float64", na_value=np.nan))
    why = escape(table.notes.get(name, "not measured"))
    for value, step in zip(values, steps, strict=True):
        text = column.show(value)
        if text == NA:
            yield f'<td title="{why}">{NA}</td>'
        else:
            yield f"<td{_shade(step)}>{escape(text)}</td>"


def _shade(step: int) -> str:
    if step == 0:
        return ""
    return f' class="{"m" if step > 0 else "l"}{abs(step)}"'
