from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from headcount.errors import UsageError
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.table import HeadTable

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


def table(about: dict[str, Any] | None = None, **values: list[Any]) -> HeadTable:
    return HeadTable.of(HEADS, values, **(about or {}))


def test_columns_stand_side_by_side_in_order() -> None:
    joined = table(b=[1, 2], a=[3, 4]).join(table(d=[5, 6], c=[7, 8]))
    assert joined.names == ["b", "a", "d", "c"]
    assert list(joined.columns) == joined.names
    assert joined.frame["d"].tolist() == [5, 6]


def test_neither_table_changes() -> None:
    one = table(a=[1, 2])
    other = table({"low": {"a": [0, 0]}}, a=[1, 2], b=[3, 4])
    one.join(other)
    one.join(other, replace=True)
    assert one.names == ["a"]
    assert list(one.low) == []
    assert other.names == ["a", "b"]


def test_descriptions_intervals_and_notes_come_along() -> None:
    one = table({"notes": {"a": "why a"}}, a=[1, math.nan])
    about = {"low": {"b": [0, 1]}, "high": {"b": [2, 3]}, "notes": {"b": "why b"}}
    other = HeadTable.of(HEADS, {"b": [1, 2]}, [Column("b", unit="nats")], **about)
    joined = one.join(other)
    assert joined.columns["b"].unit == "nats"
    assert joined.low["b"].tolist() == [0, 1]
    assert joined.high["b"].tolist() == [2, 3]
    assert joined.notes == {"a": "why a", "b": "why b"}


def test_other_heads_are_refused() -> None:
    other = HeadTable.of([*HEADS, Head("enc", 1, 0)], {"b": [1, 2, 3]})
    with pytest.raises(UsageError, match=r"heads \(2 and 3\): enc\.1\.0 is only in the second"):
        table(a=[1, 2]).join(other)
    with pytest.raises(UsageError, match=r"heads \(3 and 2\): enc\.1\.0 is only in the first"):
        other.join(table(a=[1, 2]))


def test_other_weights_are_refused_even_to_replace() -> None:
    one = table({"provenance": {"weights": "sha256:a"}}, a=[1, 2])
    other = table({"provenance": {"weights": "sha256:b"}}, b=[1, 2])
    for replace in (False, True):
        with pytest.raises(UsageError, match=r"different weights \(sha256:a and sha256:b\)\. Join"):
            one.join(other, replace=replace)
    assert one.join(table(b=[1, 2])).provenance == {"weights": "sha256:a"}


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
        table(a=mine).join(table(a=theirs))


def test_another_interval_is_refused() -> None:
    one = table({"low": {"a": [0, 0]}}, a=[1, 2])
    with pytest.raises(UsageError, match="Both tables have 'a_low'"):
        one.join(table({"low": {"a": [0, 1]}}, a=[1, 2]))


def test_equal_values_are_fine_and_lend_what_was_not_known() -> None:
    one = table(a=[1, math.nan])
    about = {"low": {"a": [0, math.nan]}, "notes": {"a": "why"}, "origins": {"a": {"call": "x"}}}
    joined = one.join(table(about, a=[1, math.nan]))
    assert joined.names == ["a"]
    assert joined.low["a"].tolist()[0] == 0
    assert joined.notes == {"a": "why"}
    assert joined.origins == {"a": {"call": "x"}}


def test_replace_takes_all_of_the_second() -> None:
    one = table({"low": {"a": [0, 0]}, "notes": {"a": "old"}}, a=[1, 2], b=[3, 4])
    joined = one.join(table(c=[8, 8], a=[7, 7]), replace=True)
    assert joined.names == ["a", "b", "c"]
    assert joined.frame["a"].tolist() == [7, 7]
    assert list(joined.low) == [], "the old interval is not that of the new value"
    assert joined.notes == {}


def test_details_of_both_are_kept_and_replaced_with_their_columns() -> None:
    old, new, more = (pd.DataFrame({"a": [n]}) for n in range(3))
    one = table({"details": {"x": old}}, a=[1, 2])
    other = table({"details": {"x": new, "y": more}}, b=[1, 2])
    assert {k: v["a"][0] for k, v in one.join(other).details.items()} == {"x": 0, "y": 2}
    replaced = one.join(other, replace=True).details
    assert {k: v["a"][0] for k, v in replaced.items()} == {"x": 1, "y": 2}


def test_a_column_from_another_call_remembers_it() -> None:
    one = table({"provenance": {"data": "one"}}, a=[1, 2])
    about = {"provenance": {"data": "two", "seed": 1}, "origins": {"b": {"call": "score"}}}
    joined = one.join(table(about, b=[1, 2], c=[1, 2]))
    assert joined.provenance == {"data": "one"}
    assert joined.origins == {
        "b": {"data": "two", "seed": 1, "call": "score"},
        "c": {"data": "two", "seed": 1},
    }


def test_columns_from_the_same_call_do_not_repeat_it() -> None:
    same = {"provenance": {"data": "one"}}
    assert table(same, a=[1, 2]).join(table(same, b=[1, 2])).origins == {}


def test_columns_of_unknown_provenance_stay_so() -> None:
    joined = table(a=[1, 2]).join(table({"provenance": {"data": "two"}}, b=[1, 2]))
    assert joined.provenance == {}
    assert joined.origins == {"b": {"data": "two"}}


def test_a_table_whose_columns_are_all_replaced_is_the_second_one() -> None:
    one = table({"provenance": {"data": "one"}}, a=[1, 2])
    other = table({"provenance": {"data": "two"}}, a=[3, 4], b=[5, 6])
    joined = one.join(other, replace=True)
    assert joined.provenance == {"data": "two"}
    assert joined.origins == {}


def test_a_table_without_columns_takes_the_others_provenance() -> None:
    joined = HeadTable.of(HEADS, {}).join(table({"provenance": {"data": "two"}}, b=[1, 2]))
    assert joined.provenance == {"data": "two"}


def test_a_replaced_column_keeps_its_place_in_values_and_bounds() -> None:
    heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    bounds = {"low": {"a": [0, 0], "b": [0, 0]}, "high": {"a": [9, 9], "b": [9, 9]}}
    one = HeadTable.of(heads, {"a": [1, 2], "b": [3, 4]}, **bounds)
    newer = {part: {"a": [5, 5]} for part in ("low", "high")}
    joined = one.join(HeadTable.of(heads, {"a": [5, 5]}, **newer), replace=True)
    assert [list(part) for part in joined.parts()] == [["a", "b"]] * 3
    assert joined.low["a"].tolist() == [5, 5]
