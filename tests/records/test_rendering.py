"""Tests of `records/rendering.py`."""

from __future__ import annotations

import io
import math
import re
import time
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from headcount.errors import UsageError
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.rendering import Brief, TableText
from headcount.records.table import HeadTable
from headcount.rooms.exhibits.exhibits import visible_token

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


class Seen(Reader):
    """The text that is seen before `more` is opened."""

    def seen(self) -> str:
        return "".join(text for text in self.texts if not text.strip().startswith(".headcount"))


def seen(html: str) -> str:
    return Seen(re.sub(r"<details>.*</details>", "", html, flags=re.DOTALL)).seen()


def test_little_of_a_wide_table_is_seen_and_more_opens_the_rest() -> None:
    heads = [Head("enc", layer, head) for layer in range(12) for head in range(12)]
    values = {f"x{n}": [0.5] * 144 for n in range(30)} | {"role": [None] * 143 + ["rare"]}
    html = HeadTable.of(heads, values)._repr_html_()
    assert len(seen(html)) <= 2_000
    assert "enc.11.11" in seen(html), "a head with a role is seen first"
    assert "more: all 144 rows and 31 columns" in html


def test_p_values_have_no_shade() -> None:
    heads = [Head("enc", 0, head) for head in range(3)]
    table = HeadTable.of(heads, {"ablation_p_adjusted": [0.0, 0.5, 1.0], "to_place": [0, 1, 2]})
    html = table._repr_html_()
    assert html.count("<td>") == 3 + 1
    assert html.count("<td class=") == 2


def test_a_drawn_table_prints_itself_and_a_row_is_brief() -> None:
    table = hostile()
    assert "head" in str(table.draw("x"))
    assert "object at 0x" not in repr(table.draw("x"))
    assert str(wide().head("enc.0.0")).startswith("enc.0.0: confidence 0")


def test_a_text_without_rows_is_a_caption_and_its_lines() -> None:
    class Said(Brief):
        def in_brief(self) -> tuple[str, None]:
            return "first\n" + "<b>line</b>\n" * 2_000, None

    assert len(repr(Said())) <= 2_000
    html = Said()._repr_html_()
    assert len(seen(html)) <= 2_000
    assert "<b>" not in html


# ---  -------------------------------------------------------------------------------------------


HEADS = [
    Head(stack, layer, head) for stack in ("enc", "cross") for layer in (0, 11) for head in (0, 1)
]
NAMES = [
    "confidence", "entropy", "entropy_first", "self", "previous", "next", "first", "separator",
    "separator_to_separator", "rest_to_separator", "punctuation", "best_offset",
]  # fmt: skip


def wide() -> HeadTable:
    values = {name: [0.125 * place for place in range(8)] for name in NAMES}
    values["previous"] = [0.5] * 4 + [math.nan] * 4
    values["first"] = [math.nan] * 8
    return HeadTable.of(
        HEADS,
        values,
        [Column("entropy", meaning="How broad.", unit="nats", paper="Clark et al. 2019")],
        low={"entropy": [0.0] * 8},
        high={"entropy": [1.0] * 8},
        notes={"previous": "cross: two texts", "first": "there is no first token"},
        provenance={"model": "[red]m[/red]"},
    )


def printed(what: HeadTable | TableText | Table, width: int = 80, colour: bool = False) -> str:
    system = "truecolor" if colour else None
    console = Console(width=width, file=io.StringIO(), force_terminal=colour, color_system=system)
    console.print(what)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("width", [30, 40, 80, 120, 200])
def test_no_line_is_too_long_and_no_word_is_cut(width: int) -> None:
    text = printed(wide(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_each_head_has_a_row_and_each_layer_a_gap() -> None:
    lines = [line.rstrip() for line in printed(wide()).splitlines()]
    rows = [line.split()[0] if line else "" for line in lines]
    start = rows.index("enc.0.0")
    assert rows[start : start + 11] == [
        "enc.0.0", "enc.0.1", "", "enc.11.0", "enc.11.1", "",
        "cross.0.0", "cross.0.1", "", "cross.11.0", "cross.11.1",
    ]  # fmt: skip


def test_what_is_missing_is_a_dash_with_its_reason() -> None:
    lines = printed(wide().draw(["previous"])).splitlines()
    assert next(line for line in lines if line.startswith("enc.0.0")).split() == ["enc.0.0", "0.50"]
    assert next(line for line in lines if line.startswith("cross.0.0")).split() == [
        "cross.0.0",
        "–",
    ]
    assert "– Previous: cross: two texts" in lines


def test_the_columns_that_fit_come_first_and_the_others_are_counted() -> None:
    text = " ".join(printed(wide()).split())
    shown = wide().draw().fitting(80)
    assert 4 < len(shown) < len(NAMES)
    assert shown == [name for name in NAMES if name != "first"][: len(shown)]
    hidden = [name for name in NAMES if name not in shown]
    assert f"{len(hidden)} more columns not shown: {', '.join(hidden)}" in text


def test_the_fit_is_tight() -> None:
    names = [name for name in NAMES if name != "first"]
    for count in range(2, len(names)):
        lines = printed(wide().draw(names[:count]), width=500).splitlines()
        width = max(len(line) for line in lines if line.startswith("──"))
        assert wide().draw().fitting(width) == names[:count]
        assert wide().draw().fitting(width - 1) == names[: count - 1]


def test_a_column_that_is_missing_everywhere_is_shown_only_when_asked_for() -> None:
    assert "first" not in wide().draw().fitting(1000)
    assert wide().draw(["first"]).fitting(80) == ["first"]
    assert "– First: there is no first token" in printed(wide())


def test_one_column_is_shown_however_narrow() -> None:
    assert wide().draw().fitting(1) == ["confidence"]


def test_a_footnote_gives_meaning_unit_and_paper() -> None:
    assert "Entropy (nats): How broad. [Clark et al. 2019]" in printed(wide())


def test_papers_can_be_left_out() -> None:
    text = printed(wide().draw(papers=False))
    assert "Entropy (nats): How broad.\n" in text.replace(" \n", "\n")
    assert "Clark" not in text


def test_columns_that_are_missing_for_one_reason_share_a_line() -> None:
    table = wide()
    table.notes = {"previous": "two texts", "first": "no token", "next": "two texts"}
    lines = printed(table).splitlines()
    assert "– Previous, Next: two texts" in lines
    assert "– First: no token" in lines


def test_names_are_no_markup() -> None:
    assert "8 heads of [red]m[/red]: enc 4, cross 4" in printed(wide())


def test_intervals_on_request() -> None:
    text = printed(wide().draw(["entropy", "self"], intervals=True))
    assert "0.25 [0.00, 1.00]" in text
    assert (
        "["
        not in printed(wide().draw(["self"], intervals=True))
        .split("Entropy")[0]
        .split("enc.0.0")[1]
    )


def test_heat_is_colour_alone_and_can_be_left_out() -> None:
    hot = printed(wide().draw(["self"]), colour=True)
    cold = printed(wide().draw(["self"], heat=False), colour=True)
    assert "48;2;" in hot
    assert "48;2;" not in cold
    assert "\x1b" not in printed(wide())


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(UsageError, match="no column 'entropi'; did you mean entropy"):
        wide().draw(["entropi"])


def test_wide_characters_stand_in_their_columns() -> None:
    columns = [Column("x", title="注意 力"), Column("y")]
    table = HeadTable.of(HEADS[:2], {"x": ["頭", None], "y": [1, 2]}, columns)
    lines = [line for line in printed(table).splitlines() if line.startswith(("enc", "head"))]
    assert {cell_len(line) for line in lines} == {cell_len(lines[0])}


def test_nothing_in_the_table_can_command_the_terminal() -> None:
    evil = "\x1b[2Jx\ny\u202e"
    table = HeadTable.of(
        HEADS[:1],
        {"x": [evil]},
        [Column("x", title=evil, meaning=evil, paper=evil)],
        notes={"x": evil},
        provenance={"model": evil},
    )
    text = printed(table)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "⟨001b⟩[2Jx⟨000a⟩y⟨202e⟩" in text.splitlines()[0]


def test_many_heads_are_set_faster_than_rich_sets_a_table() -> None:
    heads = [Head("dec", layer, head) for layer in range(16) for head in range(16)]
    table = HeadTable.of(heads, {f"x{n}": [0.5] * 256 for n in range(8)})
    plain = Table()
    for row in table.rows():
        plain.add_row(*map(str, row.values()))
    assert 2 * seconds(table) < seconds(plain)


def seconds(what: HeadTable | Table) -> float:
    """The quickest of three prints."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        printed(what, width=200)
        times.append(time.perf_counter() - begun)
    return min(times)


def test_a_table_without_heads_or_columns_prints() -> None:
    assert "0 heads" in printed(HeadTable.of([], {"x": []}))
    assert "8 heads" in printed(HeadTable.of(HEADS, {}))


# --- Tokens are shown so that nothing is invisible and nothing moves the text around ------------


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("rain", "rain"),
        ("##ing", "##ing"),
        ("▁the", "▁the"),
        ("Ġthe", "Ġthe"),
        ("", "∅"),
        (" a", "␣a"),
        ("\n", "↵"),
        ("\t\r", "⇥␍"),
        ("\x1b[2J", "⟨001b⟩[2J"),
        ("a\u202eb", "a⟨202e⟩b"),
        ("\u200b", "⟨200b⟩"),
        ("\u00a0", "⟨00a0⟩"),
        ("\ud800", "⟨d800⟩"),
        ("🙂", "🙂"),
        ("שלום", "שלום"),
        ("é", "é"),
    ],
)
def test_tokens_as_people_see_them(token: str, shown: str) -> None:
    assert visible_token(token) == shown


@given(st.text())
def test_nothing_shown_is_invisible_or_commands_the_terminal(token: str) -> None:
    shown = visible_token(token)
    assert shown
    assert all(unicodedata.category(sign)[0] not in "CZ" for sign in shown)


def test_one_column_is_drawn_by_its_name() -> None:
    table = HeadTable.of([Head("enc", 0, 0)], {"gradient": [0.5], "self": [0.25]})
    told = printed(table.draw("gradient"))
    assert "Gradient" in told
    assert "1 more column not shown: self" in told
