"""Heads to remove, in every way that a call may name them."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from headcount.errors import UsageError
from headcount.pruning.remove import named_heads
from headcount.records.heads import Head

KNOWN = [Head(stack, layer, index) for stack in ("enc",) for layer in (0, 1) for index in (0, 1, 2)]
WANTED = [Head("enc", 0, 1), Head("enc", 1, 2)]
FRAME = pd.DataFrame(
    {"score": [0.9, 0.1, 0.8, 0.7, 0.6, 0.2]},
    index=pd.MultiIndex.from_tuples(KNOWN, names=["stack", "layer", "head"]),
)


@pytest.mark.parametrize(
    "heads",
    [
        "enc.0.1, enc.1.2",
        ["enc.0.1", Head("enc", 1, 2)],
        [("enc", 0, 1), ("enc", 1, 2)],
        {0: [1], 1: {2}},
        {"0": [1], "1": [2]},
        {"enc": {0: [1], 1: [2]}},
        {"enc.0.1": 0.0, Head("enc", 1, 2): 0},
        FRAME[FRAME["score"] < 0.5],
        FRAME[FRAME["score"] < 0.5].index,
        FRAME["score"] < 0.5,
    ],
    ids=str,
)
def test_one_meaning(heads: Any) -> None:
    assert named_heads(heads, KNOWN) == WANTED


def test_one_head_is_no_list_of_three_things() -> None:
    assert named_heads(WANTED[0], KNOWN) == WANTED[:1]


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (3, "3 names no heads; give names (['enc.0.1'])"),
        (None, "None names no heads"),
        (FRAME["score"], "The column 'score' holds float64 numbers"),
        ({"enc.0.1": 0.5}, "enc.0.1 has the scale 0.5; a head is removed where its scale is 0"),
        ({"enc": [0, 1]}, "[0, 1] is no mapping of layers to heads"),
        ({0: "12"}, "{0: '12'} is no mapping of layers to heads"),
        ({0: ["a"]}, "'enc.0.a' is not a head's name"),
    ],
)
def test_what_names_no_heads_is_refused(heads: Any, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        named_heads(heads, KNOWN)
