from __future__ import annotations

import io
import math
import time

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from headcount.errors import UsageError
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.rendering import TableText
from headcount.records.table import HeadTable

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
