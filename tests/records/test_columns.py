"""Tests of `records/columns.py`."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from headcount.errors import UsageError
from headcount.records.columns import NA, Column, heat_steps


def test_a_title_is_made_from_the_name() -> None:
    assert Column("separator_to_separator").title == "Separator to separator"
    assert Column("entropy", title="H").title == "H"


def test_a_column_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Column("self").name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_what_was_not_measured_is_a_dash(missing: object) -> None:
    assert Column("self").show(missing) == NA


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00"), (np.float32(0.5), "0.50"), (np.int64(3), "3.00"), ("rare", "rare")],
)
def test_values_are_shown_in_the_columns_format(value: object, shown: str) -> None:
    assert Column("self").show(value) == shown


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "Best offset"}, "'Best offset' cannot name a column; use small letters"),
        ({"name": "head"}, "'head' cannot name a column, because it names a head itself"),
        (
            {"name": "x", "direction": "up"},
            "Column 'x' has direction 'up'; it is 'higher', 'lower'",
        ),
        ({"name": "x", "range": (1, 0)}, r"Column 'x' has range \(1, 0\); the lower bound comes"),
        ({"name": "x", "format": "q"}, "Column 'x' has format 'q', which cannot show a number"),
    ],
)
def test_a_wrong_description_is_refused_by_name(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Column(**wrong)  # type: ignore[arg-type]


def test_descriptions_go_through_json_and_unknown_keys_are_passed_over() -> None:
    column = Column("x", range=(0, None), direction="lower", more="wider", diverging=True)
    told = {**column.to_dict(), "a_key_of_a_later_version": 1}
    assert told["range"] == [0, None]
    assert Column.from_dict(told) == column


def test_no_range_at_all_is_two_open_ends() -> None:
    assert Column("x", range=None).range == (None, None)  # type: ignore[arg-type]


# ---  -------------------------------------------------------------------------------------------


NAN = math.nan


@pytest.mark.parametrize(
    ("column", "values", "steps"),
    [
        (Column("x", range=(0, 1)), [0, 1, 2, -1, NAN], [0, 9, 9, 0, 0]),
        (Column("x", range=(0, None)), [0, 2, 4], [0, 4, 9]),
        (Column("x"), [10, 11], [0, 9]),
        (Column("x"), [3, 3], [0, 0]),
        (Column("x"), [NAN, NAN], [0, 0]),
        (Column("x"), [0, 1, math.inf, -math.inf], [0, 9, 9, 0]),
        (Column("x", diverging=True), [-4, -2, 0, 2], [-9, -4, 0, 4]),
        (Column("x", diverging=True, range=(-1, 1)), [0.5, -math.inf], [4, -9]),
        (Column("x", diverging=True), [0, 0], [0, 0]),
        (Column("x"), [-1e292, 0, 1.7976931348623157e308], [0, 0, 9]),
        (Column("x"), [-1.5e308, 0, 1.5e308], [0, 4, 9]),
        (Column("x"), [0, 5e-324], [0, 9]),
    ],
)
def test_steps(column: Column, values: list[float], steps: list[int]) -> None:
    assert heat_steps(column, np.array(values, dtype=float)) == steps
