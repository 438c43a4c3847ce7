from __future__ import annotations

import json
import math
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import UsageError
from headcount.records.files import json_decode, json_encode
from headcount.records.heads import Head

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "$float" not in str(value))


def same(a: object, b: object) -> bool:
    """Equal to the bit: NaN equals NaN, 0.0 is not -0.0, 1 is not 1.0, True is not 1."""
    return repr(a) == repr(b)


@given(ANYTHING)
def test_whatever_goes_in_comes_out(value: object) -> None:
    assert same(json_decode(json_encode(value)), value)


@given(st.floats())
def test_what_is_written_is_strict_json(value: float) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads(json_encode({"x": [value]}), parse_constant=refuse)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.0, np.inf]]), [[1.0, math.inf]]),
        ((1, 2), [1, 2]),
        (Head("enc", 5, 3), "enc.5.3"),
        (PurePosixPath("a/b"), "a/b"),
    ],
)
def test_numpy_heads_and_paths_become_plain(given: object, read: object) -> None:
    assert same(json_decode(json_encode(given)), read)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, r"a\[1\] is of type set, which cannot be written as JSON"),
        (np.longdouble(1), "The value is of type longdouble"),
        ({"a": {1: 2}}, r"a has the key 1; keys are text in JSON, so write '1'"),
        ({"$float": "nan"}, r"The key '\$float' is kept for NaN"),
    ],
)
def test_what_would_not_come_back_is_refused(value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        json_encode(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"$float": []}', "{", ""])
def test_text_that_is_not_ours_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own message
        json_decode(text)
