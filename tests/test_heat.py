from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.records.columns import Column, heat_steps

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
