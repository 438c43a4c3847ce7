"""Tests of `records/table.py`."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from headcount.errors import UnknownHead, UsageError
from headcount.records.columns import Column
from headcount.records.files import json_encode
from headcount.records.heads import STACKS, Head
from headcount.records.table import HeadTable

NAN = math.nan
HEADS = [Head(stack, layer, head) for stack in STACKS for layer in range(2) for head in range(2)]


def small(**values: list[Any]) -> HeadTable:
    """A table of as many heads as there are values."""
    n = len(next(iter(values.values())))
    return HeadTable.of(HEADS[:n], values)


@pytest.fixture
def table() -> HeadTable:
    """Twelve heads, with everything that a table can have."""
    share = [0.1 * place for place in range(12)]
    previous = [0.5] * 8 + [NAN] * 4
    return HeadTable.of(
        HEADS,
        {"share": share, "previous": previous, "role": ["rare", None] * 6},
        [Column("share", range=(0, None), meaning="A share."), Column("previous", unit="mass")],
        low={"share": [value - 0.1 for value in share]},
        high={"share": [value + 0.1 for value in share]},
        notes={"previous": "cross: queries and keys are different texts"},
        provenance={"model": "m", "weights": "sha256:ab", "seed": 0},
        origins={"share": {"call": "survey", "convention": "paper"}},
    )


# --- rows and columns -------------------------------------------------------------------------


def test_rows_are_in_the_order_of_heads_whatever_came_in() -> None:
    shuffled = [HEADS[place] for place in (7, 3, 11, 0, 5)]
    table = HeadTable.of(shuffled, {"x": [7, 3, 11, 0, 5]}, low={"x": [6, 2, 10, -1, 4]})
    assert table.heads == [HEADS[place] for place in (0, 3, 5, 7, 11)]
    assert table.frame["x"].tolist() == [0, 3, 5, 7, 11]
    assert table.low["x"].tolist() == [-1, 2, 4, 6, 10]


def test_the_index_is_stack_layer_head_and_can_be_sliced_without_warning(table: HeadTable) -> None:
    assert list(table.frame.index.names) == ["stack", "layer", "head"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(table.frame.loc["dec"]) == 4
        assert table.frame.loc[("dec", 1), "share"].tolist() == pytest.approx([0.6, 0.7])
        assert table.frame.loc[("cross", 1, 1), "share"] == pytest.approx(1.1)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        np.array([1.0, 2.0], dtype=np.float32),
        pd.array([1, 2], dtype="Int64"),
        [True, False],
    ],
)
def test_numbers_of_any_kind_are_float64(values: Any) -> None:
    assert HeadTable.of(HEADS[:2], {"x": values}).frame["x"].dtype == np.float64


def test_what_is_missing_is_nan_and_never_zero() -> None:
    index = HeadTable.of(HEADS[:2], {}).frame.index
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [None, None]}, index=index)
    table = HeadTable(frame)
    assert table.frame["a"].tolist()[0] == 1
    assert math.isnan(table.frame["a"].iloc[1])
    assert table.frame["b"].isna().all()
    assert table.frame["b"].dtype == np.float64


def test_the_frame_is_a_copy() -> None:
    frame = small(x=[1, 2]).frame
    table = HeadTable(frame)
    frame.loc[("enc", 0, 0), "x"] = 9.0
    assert table.frame["x"].tolist() == [1, 2]


def test_a_column_without_a_description_gets_a_bare_one(table: HeadTable) -> None:
    assert table.columns["role"] == Column("role")
    table.frame["mine"] = 1.0
    assert table.column("mine") == Column("mine")


def test_a_table_may_be_empty() -> None:
    table = HeadTable.of([], {"x": []})
    assert len(table) == 0
    assert table.rank("x") == []
    assert repr(table) == "HeadTable(0 heads: none; 1 column: x)"


def test_repr_is_short(table: HeadTable) -> None:
    assert repr(table) == (
        "HeadTable(12 heads: enc 4, dec 4, cross 4; 3 columns: share, previous, role)"
    )
    wide = HeadTable.of(HEADS, {f"x{n}": [0.0] * 12 for n in range(99)})
    assert len(repr(wide)) < 100


def frame_of(index: list[tuple[str, int, int]], **columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(index))


ONE = [("enc", 0, 0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: HeadTable(pd.DataFrame({"x": [1]})),
            r"index has 1 level\(s\); it must have three",
        ),
        (
            lambda: HeadTable(frame_of(ONE * 2, x=[1, 2])),
            "enc.0.0 has two rows; give each head one",
        ),
        (
            lambda: HeadTable(frame_of([("mid", 0, 0)], x=[1])),
            "mid.0.0 is not a head; the stack is",
        ),
        (lambda: HeadTable(frame_of([("enc", -1, 0)], x=[1])), "enc.-1.0 is not a head"),
        (lambda: HeadTable(frame_of(ONE, Layer=[1])), "'Layer' cannot name a column"),
        (lambda: HeadTable(frame_of(ONE, stack=[1])), "'stack' cannot name a column, because"),
        (lambda: HeadTable(frame_of(ONE, x=[[1]])), "Column 'x' holds neither numbers nor words"),
        (
            lambda: HeadTable(frame_of(ONE, entropy=[1]), notes={"entropie": "?"}),
            "There is no column 'entropie'; did you mean entropy. It was named among the notes",
        ),
        (
            lambda: HeadTable(frame_of(ONE, x=[1]), [Column("zzz")]),
            "There is no column 'zzz'; the columns are x. It was named among the descriptions",
        ),
        (
            lambda: HeadTable(frame_of(ONE, x=[1]), low=frame_of([("enc", 0, 1)], x=[1])),
            "The low bounds are for 1 heads and the values for 1, and not for the same",
        ),
        (
            lambda: HeadTable(frame_of(ONE, x=[1], x_high=[2]), high=frame_of(ONE, x=[1])),
            "Column 'x_high' has the name of a bound of 'x'; rename it",
        ),
        (
            lambda: HeadTable(pd.concat([frame_of(ONE, x=[1]), frame_of(ONE, x=[2])], axis=1)),
            "two columns named 'x'",
        ),
    ],
)
def test_a_frame_that_is_no_table_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


# --- asking -----------------------------------------------------------------------------------


def test_rank_puts_higher_first_and_ties_by_stack_layer_head() -> None:
    table = small(x=[0.5, 0.9, 0.5, 0.9, 0.1, 0.9])
    assert [HEADS.index(head) for head in table.rank("x")] == [1, 3, 5, 0, 2, 4]


def test_rank_follows_the_columns_direction() -> None:
    lower = HeadTable.of(HEADS[:3], {"x": [2, 1, 2]}, [Column("x", direction="lower")])
    assert [HEADS.index(head) for head in lower.rank("x")] == [1, 0, 2]


def test_rank_leaves_out_heads_without_a_value() -> None:
    assert [HEADS.index(head) for head in small(x=[NAN, -5.0, NAN, 0.0]).rank("x")] == [3, 1]


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, NAN]), max_size=12))
def test_rank_is_a_slow_sort(values: list[float]) -> None:
    expected = [head for head, value in zip(HEADS, values, strict=False) if value == value]
    worth = dict(zip(HEADS, values, strict=False))
    expected.sort(key=lambda head: (-worth[head], HEADS.index(head)))
    assert HeadTable.of(HEADS[: len(values)], {"x": values}).rank("x") == expected


def test_rank_refuses_words(table: HeadTable) -> None:
    with pytest.raises(UsageError, match="Column 'role' holds words, so it cannot rank heads"):
        table.rank("role")


@pytest.mark.parametrize("ask", [HeadTable.rank, HeadTable.top, HeadTable.column])
def test_an_unknown_column_names_the_closest(ask: Any, table: HeadTable) -> None:
    with pytest.raises(UsageError, match=r"There is no column 'shares'; did you mean share\?"):
        ask(table, "shares")
    with pytest.raises(UsageError, match="'qqq'; the columns are share, previous, role"):
        ask(table, "qqq")


def test_top_gives_values_in_rank_order(table: HeadTable) -> None:
    top = table.top("share", 2)
    assert top.index.tolist() == [("cross", 1, 1), ("cross", 1, 0)]
    assert top.tolist() == pytest.approx([1.1, 1.0])
    assert len(table.top("share", 99)) == 12
    with pytest.raises(UsageError, match="asked for 0 heads; ask for 1 or more"):
        table.top("share", 0)


def test_head_is_a_row_with_none_for_what_is_missing(table: HeadTable) -> None:
    row = table.head("cross.0.1")
    assert row["name"] == "cross.0.1"
    assert (row["stack"], row["layer"], row["head"]) == ("cross", 0, 1)
    assert row["previous"] is None
    assert row["role"] is None
    assert row["share_low"] == pytest.approx(0.8)
    assert table.head(Head("enc", 0, 0))["role"] == "rare"
    with pytest.raises(UnknownHead, match=r"There is no head enc\.9\.9"):
        table.head("enc.9.9")


def test_stack_and_select_keep_everything_that_is_known(table: HeadTable) -> None:
    part = table.stack("dec")
    assert part.heads == HEADS[4:8]
    assert part.columns == table.columns
    assert part.low["share"].tolist() == table.low["share"].tolist()[4:8]
    assert part.origins == table.origins
    assert part.provenance == table.provenance
    assert table.select(["dec.0.1", "enc.0.0"]).heads == [HEADS[0], HEADS[5]]
    with pytest.raises(UsageError, match="There is no stack 'mid' in this table; it has enc, dec"):
        table.stack("mid")


def test_notes_on_other_stacks_stay_behind(table: HeadTable) -> None:
    assert table.notes == {"previous": "cross: queries and keys are different texts"}
    assert table.stack("dec").notes == {}
    assert table.stack("cross").notes == table.notes
    table.notes = {"previous": "dec: one; two; cross: three", "share": "no program; use another"}
    assert table.stack("dec").notes == {"previous": "dec: one; two", "share": table.notes["share"]}
    assert table.stack("cross").notes["previous"] == "cross: three"


def test_without_drops_all_that_belongs_to_a_column(table: HeadTable) -> None:
    rest = table.without(["share", "previous"])
    assert rest.names == ["role"]
    assert (list(rest.low), rest.notes, rest.origins) == ([], {}, {})
    with pytest.raises(UsageError, match="no column 'shares'"):
        table.without(["shares"])


# --- for machines -----------------------------------------------------------------------------


def test_to_dict_is_strict_json_with_null_for_missing(table: HeadTable) -> None:
    table.frame.loc[("enc", 0, 0), "share"] = math.inf
    table.provenance["rate"] = NAN
    read = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert read == json.loads(json_encode(table.to_dict())), "there is one way to write it"
    assert read["schema"] == 1
    assert read["provenance"]["rate"] is None
    assert read["provenance"]["model"] == "m"
    assert list(read["columns"]) == ["share", "previous", "role"]
    assert read["columns"]["share"]["origin"] == {"call": "survey", "convention": "paper"}
    assert read["columns"]["previous"]["note"].startswith("cross: ")
    assert "note" not in read["columns"]["share"]
    assert len(read["heads"]) == 12
    assert read["heads"][0]["share"] == "Infinity"
    assert read["heads"][11]["previous"] is None
    assert read["heads"][11]["share_high"] == pytest.approx(1.2)


# --- on disk ----------------------------------------------------------------------------------


def test_details_go_where_their_table_goes(table: HeadTable, tmp_path: Path) -> None:
    offsets = pd.DataFrame({"stack": ["enc", "dec"], "layer": 0, "head": [0, 1], "offset": [-1, 2]})
    table.details = {"offsets": offsets, "other": pd.DataFrame({"a": [1]})}
    part = table.stack("dec").without(["role"])
    assert part.details["offsets"]["offset"].tolist() == [2]
    assert part.details["other"]["a"].tolist() == [1]
    table.save(tmp_path / "run")
    read = HeadTable.load(tmp_path / "run")
    assert read.details.keys() == {"offsets", "other"}
    assert_frame_equal(read.details["offsets"], offsets)


def assert_same(one: HeadTable, other: HeadTable) -> None:
    """Equal in every part, to the bit."""
    for mine, theirs in zip(one.parts(), other.parts(), strict=True):
        assert_frame_equal(mine, theirs, check_exact=True)
        for name in mine:
            if mine[name].dtype == np.float64:
                signs = [np.signbit(part[name].to_numpy()) for part in (mine, theirs)]
                known = mine[name].notna().to_numpy()
                assert (signs[0] == signs[1])[known].all()
    assert one.columns == other.columns
    assert one.notes == other.notes
    assert one.provenance == other.provenance
    assert one.origins == other.origins


def test_a_table_comes_back_from_disk_as_it_was(table: HeadTable, tmp_path: Path) -> None:
    table.save(tmp_path / "run")
    assert_same(HeadTable.load(tmp_path / "run"), table)
    assert_same(HeadTable.load(tmp_path / "run" / "heads.parquet"), table)


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in ("stack", "layer", "head", "name")
)
HEAD = st.builds(Head, st.sampled_from(STACKS), st.integers(0, 40), st.integers(0, 40))


@st.composite
def tables(draw: st.DrawFn) -> HeadTable:
    """Random tables: any heads, any floats, words, intervals for some columns."""
    heads = draw(st.lists(HEAD, unique=True, max_size=6))
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    numbers = st.lists(st.floats(), min_size=len(heads), max_size=len(heads))
    words = st.lists(st.text() | st.none(), min_size=len(heads), max_size=len(heads))
    values = {name: draw(numbers | words) for name in names}
    free = [n for n in names if f"{n}_low" not in names and f"{n}_high" not in names]
    bounded = [name for name in free if draw(st.booleans())]
    return HeadTable.of(
        heads,
        values,
        [Column(name, meaning=draw(st.text())) for name in names if draw(st.booleans())],
        low={name: draw(numbers) for name in bounded},
        high={name: draw(numbers) for name in bounded if draw(st.booleans())},
        notes={name: draw(st.text()) for name in names if draw(st.booleans())},
        provenance={"seed": draw(st.integers()), "rate": draw(st.floats(allow_nan=False))},
        origins={name: {"call": draw(st.text())} for name in names if draw(st.booleans())},
    )


@settings(max_examples=40, deadline=None)
@given(tables())
def test_any_table_comes_back_from_disk_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, table: HeadTable
) -> None:
    folder = tmp_path_factory.mktemp("table") / "run"
    table.save(folder)
    assert_same(HeadTable.load(folder), table)


@settings(max_examples=30, deadline=None)
@given(tables())
def test_any_table_can_be_shown_and_told(table: HeadTable) -> None:
    json.dumps(table.to_dict(), allow_nan=False)
    html = table._repr_html_()
    assert (html.partition("<details>")[2] or html).count("<tr") == len(table) + 1
    assert len(repr(table)) < 200


# ---  -------------------------------------------------------------------------------------------


HEADS_TABLE_JOIN = [Head("enc", 0, 0), Head("enc", 0, 1)]


def table_table_join(about: dict[str, Any] | None = None, **values: list[Any]) -> HeadTable:
    return HeadTable.of(HEADS_TABLE_JOIN, values, **(about or {}))


def test_columns_stand_side_by_side_in_order() -> None:
    joined = table_table_join(b=[1, 2], a=[3, 4]).join(table_table_join(d=[5, 6], c=[7, 8]))
    assert joined.names == ["b", "a", "d", "c"]
    assert list(joined.columns) == joined.names
    assert joined.frame["d"].tolist() == [5, 6]


def test_neither_table_changes() -> None:
    one = table_table_join(a=[1, 2])
    other = table_table_join({"low": {"a": [0, 0]}}, a=[1, 2], b=[3, 4])
    one.join(other)
    one.join(other, replace=True)
    assert one.names == ["a"]
    assert list(one.low) == []
    assert other.names == ["a", "b"]


def test_descriptions_intervals_and_notes_come_along() -> None:
    one = table_table_join({"notes": {"a": "why a"}}, a=[1, math.nan])
    about = {"low": {"b": [0, 1]}, "high": {"b": [2, 3]}, "notes": {"b": "why b"}}
    other = HeadTable.of(HEADS_TABLE_JOIN, {"b": [1, 2]}, [Column("b", unit="nats")], **about)
    joined = one.join(other)
    assert joined.columns["b"].unit == "nats"
    assert joined.low["b"].tolist() == [0, 1]
    assert joined.high["b"].tolist() == [2, 3]
    assert joined.notes == {"a": "why a", "b": "why b"}


def test_other_heads_are_refused() -> None:
    other = HeadTable.of([*HEADS_TABLE_JOIN, Head("enc", 1, 0)], {"b": [1, 2, 3]})
    with pytest.raises(UsageError, match=r"heads \(2 and 3\): enc\.1\.0 is only in the second"):
        table_table_join(a=[1, 2]).join(other)
    with pytest.raises(UsageError, match=r"heads \(3 and 2\): enc\.1\.0 is only in the first"):
        other.join(table_table_join(a=[1, 2]))


def test_other_weights_are_refused_even_to_replace() -> None:
    one = table_table_join({"provenance": {"weights": "sha256:a"}}, a=[1, 2])
    other = table_table_join({"provenance": {"weights": "sha256:b"}}, b=[1, 2])
    for replace in (False, True):
        with pytest.raises(UsageError, match=r"different weights \(sha256:a and sha256:b\)\. Join"):
            one.join(other, replace=replace)
    assert one.join(table_table_join(b=[1, 2])).provenance == {"weights": "sha256:a"}


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        (
            [1, 2],
            [1, 3],
            r"Both tables have 'a', and at enc\.0\.1 it is 2\.0 in the first and 3\.0",
        ),
        ([1, math.nan], [1, 0], r"at enc\.0\.1 it is nan in the first and 0\.0 in the second"),
        (["x", None], ["x", "y"], r"at enc\.0\.1 it is <NA> in the first and y in the second"),
    ],
)
def test_another_value_is_refused(mine: list[Any], theirs: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        table_table_join(a=mine).join(table_table_join(a=theirs))


def test_another_interval_is_refused() -> None:
    one = table_table_join({"low": {"a": [0, 0]}}, a=[1, 2])
    with pytest.raises(UsageError, match="Both tables have 'a_low'"):
        one.join(table_table_join({"low": {"a": [0, 1]}}, a=[1, 2]))


def test_equal_values_are_fine_and_lend_what_was_not_known() -> None:
    one = table_table_join(a=[1, math.nan])
    about = {"low": {"a": [0, math.nan]}, "notes": {"a": "why"}, "origins": {"a": {"call": "x"}}}
    joined = one.join(table_table_join(about, a=[1, math.nan]))
    assert joined.names == ["a"]
    assert joined.low["a"].tolist()[0] == 0
    assert joined.notes == {"a": "why"}
    assert joined.origins == {"a": {"call": "x"}}


def test_replace_takes_all_of_the_second() -> None:
    one = table_table_join({"low": {"a": [0, 0]}, "notes": {"a": "old"}}, a=[1, 2], b=[3, 4])
    joined = one.join(table_table_join(c=[8, 8], a=[7, 7]), replace=True)
    assert joined.names == ["a", "b", "c"]
    assert joined.frame["a"].tolist() == [7, 7]
    assert list(joined.low) == [], "the old interval is not that of the new value"
    assert joined.notes == {}


def test_details_of_both_are_kept_and_replaced_with_their_columns() -> None:
    old, new, more = (pd.DataFrame({"a": [n]}) for n in range(3))
    one = table_table_join({"details": {"x": old}}, a=[1, 2])
    other = table_table_join({"details": {"x": new, "y": more}}, b=[1, 2])
    assert {k: v["a"][0] for k, v in one.join(other).details.items()} == {"x": 0, "y": 2}
    replaced = one.join(other, replace=True).details
    assert {k: v["a"][0] for k, v in replaced.items()} == {"x": 1, "y": 2}


def test_a_column_from_another_call_remembers_it() -> None:
    one = table_table_join({"provenance": {"data": "one"}}, a=[1, 2])
    about = {"provenance": {"data": "two", "seed": 1}, "origins": {"b": {"call": "score"}}}
    joined = one.join(table_table_join(about, b=[1, 2], c=[1, 2]))
    assert joined.provenance == {"data": "one"}
    assert joined.origins == {
        "b": {"data": "two", "seed": 1, "call": "score"},
        "c": {"data": "two", "seed": 1},
    }


def test_columns_from_the_same_call_do_not_repeat_it() -> None:
    same = {"provenance": {"data": "one"}}
    assert table_table_join(same, a=[1, 2]).join(table_table_join(same, b=[1, 2])).origins == {}


def test_columns_of_unknown_provenance_stay_so() -> None:
    joined = table_table_join(a=[1, 2]).join(
        table_table_join({"provenance": {"data": "two"}}, b=[1, 2])
    )
    assert joined.provenance == {}
    assert joined.origins == {"b": {"data": "two"}}


def test_a_table_whose_columns_are_all_replaced_is_the_second_one() -> None:
    one = table_table_join({"provenance": {"data": "one"}}, a=[1, 2])
    other = table_table_join({"provenance": {"data": "two"}}, a=[3, 4], b=[5, 6])
    joined = one.join(other, replace=True)
    assert joined.provenance == {"data": "two"}
    assert joined.origins == {}


def test_a_table_without_columns_takes_the_others_provenance() -> None:
    joined = HeadTable.of(HEADS_TABLE_JOIN, {}).join(
        table_table_join({"provenance": {"data": "two"}}, b=[1, 2])
    )
    assert joined.provenance == {"data": "two"}


def test_a_replaced_column_keeps_its_place_in_values_and_bounds() -> None:
    heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    bounds = {"low": {"a": [0, 0], "b": [0, 0]}, "high": {"a": [9, 9], "b": [9, 9]}}
    one = HeadTable.of(heads, {"a": [1, 2], "b": [3, 4]}, **bounds)
    newer = {part: {"a": [5, 5]} for part in ("low", "high")}
    joined = one.join(HeadTable.of(heads, {"a": [5, 5]}, **newer), replace=True)
    assert [list(part) for part in joined.parts()] == [["a", "b"]] * 3
    assert joined.low["a"].tolist() == [5, 5]
