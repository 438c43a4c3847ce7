"""The head table in a terminal and in a notebook, and one head's map of a sentence as HTML.

Whatever a model or a text brings (names, tokens) is made printable or escaped; no script is used.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from headcount.errors import UsageError
from headcount.records.columns import NA, STEPS, heat_steps

if TYPE_CHECKING:
    from headcount.records.table import HeadTable


# --- How a token is shown to people -------------------------------------------------------------

_NAMED = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅"}


#: A space as SentencePiece writes it, and bytes that it has no piece for.
_PIECE_SPACE, _BYTE = "\u2581", re.compile(r"<0x([0-9A-F]{2})>")


def token_texts(tokens: Sequence[str]) -> list[str]:
    """Tokens as text: what byte-level and SentencePiece tokenizers write for letters and spaces.

    The space before a word goes, as long as something follows it. A character that several tokens
    share stands in each of them with its part. Tokens of other tokenizers stay as they are.

    >>> token_texts(["\u2581Mary", "s", "\u2581"]), token_texts(["\u0120Mary", "s", "\u010a"])
    (['Mary', 's', ' '], ['Mary', 's', '\\n'])
    >>> token_texts(["un", "##do", "\u0120x"])  # a letter of Maltese, in no text of bytes
    ['un', '##do', 'x']
    >>> token_texts(["\u2581", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>"])
    [' ', '\U0001f642 1/4', '\U0001f642 2/4', '\U0001f642 3/4', '\U0001f642 4/4']
    """
    if any(token.startswith(_PIECE_SPACE) for token in tokens):
        spaced = [token.replace(_PIECE_SPACE, " ") for token in tokens]
        bytes_of = [_spelt(token) for token in spaced]
    elif any(token.startswith(("\u0120", "\u010a")) for token in tokens):
        alphabet = _byte_alphabet()
        if not all(sign in alphabet for token in tokens for sign in token):
            return list(tokens)
        bytes_of = [bytes(alphabet[sign] for sign in token) for token in tokens]
    else:
        return list(tokens)
    found = _shared_characters(bytes_of)
    if found is None:
        return list(tokens)
    return [text[1:] if text[:1] == " " and text.strip() else text for text in found]


def _spelt(token: str) -> bytes:
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.encode("utf-8", "surrogatepass")


@cache
def _byte_alphabet() -> dict[str, int]:
    """The letter that byte-level tokenizers write for each byte (Radford et al. 2019)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + k): b for k, b in enumerate(others)}


def _shared_characters(parts: Sequence[bytes]) -> list[str] | None:
    """Each part as text, with a share where a character goes on in the next; None if it is none."""
    try:
        text = b"".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        return None
    ends = list(accumulate(map(len, parts)))
    starts, found, at = [0, *ends[:-1]], [""] * len(parts), 0
    for character in text:
        size = len(character.encode("utf-8"))
        own = [k for k in range(bisect_right(ends, at), len(parts)) if starts[k] < at + size]
        own = [k for k in own if parts[k]]
        for turn, k in enumerate(own, 1):
            found[k] += character if len(own) == 1 else f"{character} {turn}/{len(own)}"
        at += size
    return found


def visible_token(token: str) -> str:
    """A token with its white space, control and direction characters made visible.

    >>> visible_token("a b"), visible_token(""), visible_token("x\\u202ey")
    ('a␣b', '∅', 'x⟨202e⟩y')
    """
    if not token:
        return _NAMED[""]
    return "".join(_visible(character) for character in token)


def _visible(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"):
        return f"⟨{ord(character):04x}⟩"
    return character


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
        measured = [name for name in telling_first(table) if table.frame[name].notna().any()]
        self.candidates = measured if columns is None else list(columns)
        self._cells = {name: self._texts(name) for name in self.candidates}
        self._titles = {name: _printable(table.column(name).title) for name in self.candidates}
        self._label_width = max(cell_len(str(head)) for head in [*table.heads, "head"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The grid, then what its columns mean and what it leaves out."""
        shown = self.fitting(options.max_width)
        sizes = ", ".join(f"{name} {len(self.table.stack(name))}" for name in self.table.stacks)
        title = _caption(self.table) + (f": {sizes}" if sizes else "")
        # Text, never strings: rich would read a model named "[red]" as markup.
        yield Text(_printable(title), style="bold")
        yield from self._grid(shown, console)
        for footnote in self._footnotes(shown):
            yield Text(_printable(footnote), style="dim")

    def fitting(self, width: int) -> list[str]:
        """The columns that fit into so many characters next to the heads' names; one at least."""
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
        for step in _steps(self.table, name) if self.heat else [0] * len(self.table):
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
_MATTERS = "How much it matters"


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
        return 1 if table.column(name).group == _MATTERS and "_p" not in name else 2

    return sorted(table.names, key=rank)


def _caption(table: HeadTable) -> str:
    model = table.provenance.get("model")
    return f"{len(table)} heads" + (f" of {model}" if model else "")


def _steps(table: HeadTable, name: str) -> list[int]:
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


# --- The head table in a notebook ---------------------------------------------------------------

# Shades are half transparent, so that the page's own ink stays readable on light and dark alike.
_SHADES = "".join(
    f".headcount-table td.m{step}{{background:rgba(20,130,140,{step * 0.05:.2f})}}"
    f".headcount-table td.l{step}{{background:rgba(190,90,30,{step * 0.05:.2f})}}"
    for step in range(1, STEPS + 1)
)
_BACKGROUND = "var(--jp-layout-color0,var(--vscode-editor-background,Canvas))"
_STYLE = (
    ".headcount-table{max-height:36em;overflow:auto;font-variant-numeric:tabular-nums}"
    ".headcount-table table{border-collapse:collapse;font-size:12px;margin:0}"
    ".headcount-table tr{background:none!important}"  # notebooks stripe rows, and shades lie on it
    ".headcount-table th,.headcount-table td"
    "{padding:2px 8px;text-align:right;border:0;background:none;color:inherit}"
    ".headcount-table th[scope=row]{text-align:left;font-family:monospace;font-weight:normal;"
    f"position:sticky;left:0;background:{_BACKGROUND}}}"
    f".headcount-table thead th{{position:sticky;top:0;z-index:1;background:{_BACKGROUND}}}"
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


def _headings(table: HeadTable) -> Iterator[str]:
    for name in telling_first(table):
        column = table.column(name)
        parts = [column.name, column.meaning, column.unit, column.paper, table.notes.get(name, "")]
        tooltip = escape(" · ".join(part for part in parts if part))
        yield f'<th title="{tooltip}">{escape(column.title)}</th>'


def _rows(table: HeadTable) -> Iterator[str]:
    cells = [list(_cells(table, name)) for name in telling_first(table)]
    layer = None
    for row, head in enumerate(table.heads):
        opening = "<tr>" if head[:2] == layer else '<tr class="layer">'
        layer = head[:2]
        yield f'{opening}<th scope="row">{escape(str(head))}</th>'
        yield "".join(column[row] for column in cells) + "</tr>"


def _cells(table: HeadTable, name: str) -> Iterator[str]:
    """A column's cells: shaded numbers, words, and dashes that say why."""
    column, why = table.column(name), escape(table.notes.get(name, "not measured"))
    for value, step in zip(table.frame[name], _steps(table, name), strict=True):
        text = column.show(value)
        shade = f' class="{"m" if step > 0 else "l"}{abs(step)}"' if step else ""
        yield f'<td title="{why}">{NA}</td>' if text == NA else f"<td{shade}>{escape(text)}</td>"


# --- One head on one sentence in a notebook -----------------------------------------------------

#: Lines that cover this share of a query's weight are drawn, and never more than so many.
_SHARE, _MOST = 0.8, 6
#: Pixels of a line of text, and of the room between the two columns of tokens.
_STEP, _ROOM, _LABEL = 18, 150, 110
#: More tokens than this make lines a tangle: then there is only the heat map.
_TANGLE = 60

_MAP_STYLE = (
    ".headcount-view{display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start;font-size:12px}"
    ".headcount-view table{border-collapse:collapse}"
    ".headcount-view tr{background:none!important}"  # notebooks stripe rows, and shades lie on it
    ".headcount-view caption{text-align:left;padding-bottom:6px;white-space:nowrap}"
    ".headcount-view th{font:11px monospace;text-align:right;padding:0 6px;border:0;"
    "background:none;color:inherit;white-space:nowrap;unicode-bidi:isolate}"
    ".headcount-view thead th{writing-mode:vertical-rl;transform:rotate(180deg);padding:6px 0;"
    "text-align:left;vertical-align:top}"  # turned round, top is where the map begins
    ".headcount-view td{width:16px;min-width:16px;height:16px;padding:0;"
    "border:1px solid rgba(128,128,128,.15)}"
    ".headcount-view svg text{font:11px monospace;fill:currentColor}"
    ".headcount-view line{stroke:rgb(20,130,140);stroke-width:2}"
)


def view_html(
    head: str, queries: Sequence[str], keys: Sequence[str], weights: NDArray[np.float32]
) -> str:
    """The weights ``[query, key]`` of a head as HTML that stands by itself.

    >>> view_html("enc.0.1", ["a"], ["<b>"], np.ones((1, 1), dtype=np.float32)).count("&lt;b&gt;")
    3
    """
    queries, keys = ([visible_token(one) for one in token_texts(side)] for side in (queries, keys))
    lines = "" if max(len(queries), len(keys)) > _TANGLE else _lines(queries, keys, weights)
    return (
        f'<div class="headcount-view"><style>{_MAP_STYLE}</style>'
        f"{_heat_map(head, queries, keys, weights)}{lines}</div>"
    )


def _heat_map(
    head: str, queries: Sequence[str], keys: Sequence[str], weights: NDArray[np.float32]
) -> str:
    headings = "".join(f'<th scope="col">{escape(key)}</th>' for key in keys)
    rows = "".join(
        f'<tr><th scope="row">{escape(query)}</th>{"".join(_map_cells(query, keys, row))}</tr>'
        for query, row in zip(queries, weights, strict=True)
    )
    return (
        f"<table><caption>Head <b>{escape(head)}</b>: query rows, key columns</caption>"
        f"<thead><tr><th></th>{headings}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _map_cells(query: str, keys: Sequence[str], row: NDArray[np.float32]) -> Iterator[str]:
    """Shaded by the square root of the weight, so that small ones show."""
    for key, weight in zip(keys, row, strict=True):
        title = escape(f"{query} → {key}: {weight:.3f}", quote=True)
        shade = float(np.sqrt(max(0.0, float(weight))))
        yield f'<td title="{title}" style="background:rgba(20,130,140,{shade:.3f})"></td>'


def _lines(queries: Sequence[str], keys: Sequence[str], weights: NDArray[np.float32]) -> str:
    """Queries on the left, keys on the right, and lines as strong as the weight."""
    height = _STEP * (max(len(queries), len(keys)) + 1)
    width = 2 * _LABEL + _ROOM
    label = f"Lines from each token to those that hold {_SHARE:.0%} of its weight"
    left = "".join(_label(token, _LABEL - 6, row, "end") for row, token in enumerate(queries))
    right = "".join(_label(token, _LABEL + _ROOM + 6, row) for row, token in enumerate(keys))
    drawn = "".join(_map_line(*link) for link in _links(weights))
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}">{drawn}{left}{right}</svg>'
    )


def _links(weights: NDArray[np.float32]) -> Iterator[tuple[int, int, float]]:
    """Query, key and weight of the lines worth drawing."""
    for query, row in enumerate(weights):
        held = 0.0
        for key in np.argsort(-row, kind="stable")[:_MOST]:
            if held >= _SHARE or row[key] <= 0:
                break
            held += float(row[key])
            yield query, int(key), float(row[key])


def _map_line(query: int, key: int, weight: float) -> str:
    return (
        f'<line x1="{_LABEL}" y1="{_middle(query)}" x2="{_LABEL + _ROOM}" y2="{_middle(key)}" '
        f'stroke-opacity="{weight:.3f}"/>'
    )


def _label(token: str, x: int, row: int, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{_middle(row) + 4}" text-anchor="{anchor}">{escape(token)}</text>'


def _middle(row: int) -> int:
    return _STEP * row + _STEP


# --- Tables for papers --------------------------------------------------------------------------

#: What a paper shows of each frame: a title, and a column or a value with its interval.
_SHOWN: dict[str, dict[str, str | tuple[str, str, str]]] = {
    "roles": {
        "head": "head",
        "role": "role",
        "of": "label",
        "value": ("value", "low", "high"),
        "chance": "baseline",
        "p (corrected)": "p_adjusted",
        "n": "n",
    },
    "relations": {
        "relation": "relation",
        "head": "head",
        "direction": "direction",
        "accuracy": ("accuracy", "low", "high"),
        "best offset": "baseline",
        "offset": "offset",
        "random twin": "control",
        "p (corrected)": "p_adjusted",
        "n": "n",
    },
    "curve": {
        "order": "order",
        "heads left": "heads_left",
        "metric": "metric",
        "value": ("value", "low", "high"),
        "change": ("delta", "delta_low", "delta_high"),
        "p": "p",
        "lost at most": "bound",
        "n": "n",
    },
    "agreement": {
        "measure": "first",
        "and": "second",
        "stack": "stack",
        "correlation": "kind",
        "value": ("value", "low", "high"),
        "heads": "heads",
    },
}


def check_paper_table(name: str, format: str) -> None:
    """Refuse a table that there is not, or a format."""
    if name not in _SHOWN:
        raise UsageError(f"There is no table of '{name}'; choose {', '.join(_SHOWN)}.")
    if format not in ("markdown", "latex"):
        raise UsageError(f"The format is '{format}'; choose markdown or latex.")


def paper_table(name: str, frame: pd.DataFrame, format: str = "markdown") -> str:
    """A frame of a run (roles, relations, curve, agreement) as Markdown or LaTeX.

    Of relations give the best head of each (`hc.roles.best_heads`).

    >>> frame = pd.DataFrame({"first": ["gradient"], "second": ["ablation"], "stack": ["enc"],
    ...     "kind": ["spearman"], "value": [0.5], "low": [0.3], "high": [0.7], "heads": [48]})
    >>> print(paper_table("agreement", frame))
    | measure | and | stack | correlation | value | heads |
    |---|---|---|---|---|---|
    | gradient | ablation | enc | spearman | 0.500 [0.300, 0.700] | 48 |
    """
    check_paper_table(name, format)
    if "head" in frame and "layer" in frame:
        named = [f"{r.stack}.{r.layer}.{r.head}" for r in frame.itertuples()]
        frame = frame.assign(head=named)
    there = {
        title: columns
        for title, columns in _SHOWN[name].items()
        if (columns if isinstance(columns, str) else columns[0]) in frame
    }
    rows = [[_cell(row, columns) for columns in there.values()] for row in frame.to_dict("records")]
    if format == "markdown":
        lines = [list(there), *rows]
        text = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
        return "\n".join([text[0], "|" + "---|" * len(there), *text[1:]])
    body = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
    head = " & ".join(map(_latex, there)) + r" \\"
    return "\n".join(
        [rf"\begin{{tabular}}{{{'l' * len(there)}}}", r"\toprule", head, r"\midrule", *body,
         r"\bottomrule", r"\end{tabular}"]
    )  # fmt: skip


def _cell(row: Mapping[Any, Any], columns: str | tuple[str, str, str]) -> str:
    if isinstance(columns, str):
        return _figure(row.get(columns))
    value, low, high = (_figure(row.get(name)) for name in columns)
    return f"{value} [{low}, {high}]" if low and high else value


def _figure(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        value += 0.0  # no minus before 0
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.2g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


_LATEX = str.maketrans({c: "\\" + c for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"})


def _latex(text: str) -> str:
    plain = text.replace("\\", r"\textbackslash{}").translate(_LATEX)
    return plain.replace("->", r"$\to$").replace("<-", r"$\gets$")
