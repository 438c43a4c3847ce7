from __future__ import annotations

import math
import re
from html.parser import HTMLParser

from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.table import HeadTable

HOSTILE = "</script></td><img src=x onerror=alert(1)>\"'&amp;"


class Reader(HTMLParser):
    """What a browser would see: tags in order, attributes, and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.titles: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hostile() -> HeadTable:
    return HeadTable.of(
        [Head("enc", 0, 0), Head("enc", 1, 0)],
        {"x": [0.5, math.nan], "role": [HOSTILE, None]},
        [Column("x", title=HOSTILE, meaning=HOSTILE, unit=HOSTILE, paper=HOSTILE)],
        notes={"x": HOSTILE},
        provenance={"model": HOSTILE},
    )


def test_every_string_is_text_and_nothing_else() -> None:
    page = Reader(hostile()._repr_html_())
    assert set(page.tags) == {
        "div",
        "style",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert page.texts.count(HOSTILE) == 2  # the title of x, and a word
    assert f"2 heads of {HOSTILE}" in page.texts
    assert HOSTILE in page.titles  # why a value is missing
    assert f"x · {HOSTILE} · {HOSTILE} · {HOSTILE} · {HOSTILE}" in page.titles


def test_missing_is_a_dash_that_says_why() -> None:
    table = HeadTable.of(
        [Head("enc", 0, 0)], {"x": [math.nan], "y": [math.nan]}, notes={"x": "why"}
    )
    html = table._repr_html_()
    assert '<td title="why">–</td><td title="not measured">–</td>' in html


def test_numbers_are_shown_and_shaded() -> None:
    heads = [Head("enc", 0, head) for head in range(3)]
    columns = [Column("x", range=(0, 1)), Column("y", diverging=True)]
    html = HeadTable.of(heads, {"x": [0, 0.5, 1], "y": [-1, 0, 1]}, columns)._repr_html_()
    cells = re.findall(r"<td[^>]*>[^<]*</td>", html)
    assert cells == [
        "<td>0.00</td>",
        '<td class="l9">-1.00</td>',
        '<td class="m4">0.50</td>',
        "<td>0.00</td>",
        '<td class="m9">1.00</td>',
        '<td class="m9">1.00</td>',
    ]


def test_every_style_is_kept_inside_the_table() -> None:
    style = re.search(r"<style>(.*?)</style>", hostile()._repr_html_())
    assert style is not None
    for rule in re.findall(r"([^{}]+)\{[^}]*\}", style[1]):
        assert all(one.startswith(".headcount-table") for one in rule.split(","))
    ink = re.findall(r"(?<!-)color:([^;}]+)", style[1])
    assert set(ink) == {"inherit"}, "the page's own ink suits light and dark"


def test_a_big_table_scrolls_and_stays_small() -> None:
    heads = [Head("enc", layer, head) for layer in range(32) for head in range(32)]
    html = HeadTable.of(heads, {f"x{n}": [0.5] * 1024 for n in range(14)})._repr_html_()
    assert "overflow:auto" in html
    assert len(html) < 600_000
