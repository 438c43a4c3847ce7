"""One head on one sentence in a notebook: a heat map and lines, every token escaped, no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from headcount.tokens import visible_token

__all__ = ["view_html"]

#: Lines that cover this share of a query's weight are drawn, and never more than so many.
_SHARE, _MOST = 0.8, 6
#: Pixels of a line of text, and of the room between the two columns of tokens.
_STEP, _ROOM, _LABEL = 18, 150, 110
#: More tokens than this make lines a tangle: then the heat map stands alone.
_TANGLE = 60

_STYLE = (
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
    asking, answering = [visible_token(one) for one in queries], [visible_token(k) for k in keys]
    lines = "" if max(len(asking), len(answering)) > _TANGLE else _lines(asking, answering, weights)
    return (
        f'<div class="headcount-view"><style>{_STYLE}</style>'
        f"{_heat_map(head, asking, answering, weights)}{lines}</div>"
    )


def _heat_map(
    head: str, queries: Sequence[str], keys: Sequence[str], weights: NDArray[np.float32]
) -> str:
    headings = "".join(f'<th scope="col">{escape(key)}</th>' for key in keys)
    rows = "".join(
        f'<tr><th scope="row">{escape(query)}</th>{"".join(_cells(query, keys, row))}</tr>'
        for query, row in zip(queries, weights, strict=True)
    )
    return (
        f"<table><caption>Head <b>{escape(head)}</b>: rows ask, columns answer</caption>"
        f"<thead><tr><th></th>{headings}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cells(query: str, keys: Sequence[str], row: NDArray[np.float32]) -> Iterator[str]:
    """Shaded by the square root of the weight, so that small ones show."""
    for key, weight in zip(keys, row, strict=True):
        told = escape(f"{query} → {key}: {weight:.3f}", quote=True)
        shade = float(np.sqrt(max(0.0, float(weight))))
        yield f'<td title="{told}" style="background:rgba(20,130,140,{shade:.3f})"></td>'


def _lines(queries: Sequence[str], keys: Sequence[str], weights: NDArray[np.float32]) -> str:
    """Who asks on the left, who answers on the right, and lines as strong as the weight."""
    height = _STEP * (max(len(queries), len(keys)) + 1)
    width = 2 * _LABEL + _ROOM
    told = f"Lines from each token to those that hold {_SHARE:.0%} of its weight"
    left = "".join(_label(token, _LABEL - 6, row, "end") for row, token in enumerate(queries))
    right = "".join(_label(token, _LABEL + _ROOM + 6, row) for row, token in enumerate(keys))
    drawn = "".join(_line(*link) for link in _links(weights))
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{told}">{drawn}{left}{right}</svg>'
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


def _line(query: int, key: int, weight: float) -> str:
    return (
        f'<line x1="{_LABEL}" y1="{_middle(query)}" x2="{_LABEL + _ROOM}" y2="{_middle(key)}" '
        f'stroke-opacity="{weight:.3f}"/>'
    )


def _label(token: str, x: int, row: int, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{_middle(row) + 4}" text-anchor="{anchor}">{escape(token)}</text>'


def _middle(row: int) -> int:
    return _STEP * row + _STEP
