"""Functions of the heads that survive."""

from __future__ import annotations

import pandas as pd
import pytest

from headcount.errors import UsageError
from headcount.records.heads import Head
from headcount.rooms.agreement.survival import (
    left_by_layer,
    left_by_stack,
    role_survival,
    survivors,
)

ROLES = pd.DataFrame(
    [
        ("enc", 0, 0, "positional"),
        ("enc", 0, 0, "syntactic"),
        ("enc", 0, 1, "rare"),
        ("enc", 1, 0, "sink"),
        ("cross", 0, 0, "other"),
    ],
    columns=["stack", "layer", "head", "role"],
)
EVERY = [
    *(Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)),
    Head("cross", 0, 0),
    Head("cross", 1, 0),
]
SETS = {4: "enc.0.0,enc.0.1,enc.1.0,cross.0.0", 1: [Head("enc", 0, 0)]}


def count(frame: pd.DataFrame, **where: object) -> int:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return int(frame["heads"].iloc[0])


def test_each_function_of_a_head_counts() -> None:
    found = survivors(SETS, ROLES)
    of = {
        function: count(found, set="4", stack="enc", function=function)
        for function in ("positional", "syntactic", "rare", "other")
    }
    assert of == {"positional": 1, "syntactic": 1, "rare": 1, "other": 1}  # the sink is "other"
    assert count(found, set="4", stack="cross", function="other") == 1
    assert count(found, set="1", stack="enc", function="rare") == 0
    assert set(found[found["set"] == "1"]["left"]) == {1}


def test_roles_of_each_pruned_model() -> None:
    changed = {4: ROLES, 1: ROLES[ROLES["role"] == "rare"]}
    found = survivors(SETS, changed, functions=["positional"])
    assert count(found, set="4", stack="enc", function="positional") == 1
    assert count(found, set="1", stack="enc", function="positional") == 0
    assert count(found, set="1", stack="enc", function="other") == 1
    with pytest.raises(UsageError, match="no roles frame for the set 1"):
        survivors(SETS, {4: ROLES})
    with pytest.raises(UsageError, match="has no column 'role'"):
        survivors(SETS, ROLES.drop(columns="role"))


def test_what_is_left_by_stack_and_layer() -> None:
    stacks = left_by_stack(SETS, EVERY)
    assert count(stacks, set="4", stack="enc") == 3
    assert stacks["share"].tolist() == [0.75, 0.5, 0.25, 0.0]
    layers = left_by_layer(SETS, EVERY)
    assert count(layers, set="4", stack="enc", layer=1) == 1
    assert count(layers, set="4", stack="cross", layer=1) == 0
    pooled = left_by_layer(SETS, EVERY, pool=2)
    assert pooled["heads"].tolist() == [3, 1, 1, 0]
    assert set(pooled["layer"]) == {0}


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ("enc.9.9", r"There is no head enc\.9\.9; this model has"),
        ("enc.0.0,enc.0.0", r"enc\.0\.0 is named twice"),
    ],
)
def test_heads_that_cannot_be(heads: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        left_by_stack({"a": heads}, EVERY)
    with pytest.raises(UsageError, match="pool is 0"):
        left_by_layer({"a": "enc.0.0"}, EVERY, pool=0)


def test_every_role_of_a_head_is_kept_removed_lost_or_gained() -> None:
    after = pd.DataFrame(
        [("enc", 0, 0, "syntactic"), ("enc", 0, 1, "rare"), ("enc", 0, 1, "sink")],
        columns=ROLES.columns,
    )
    left = [head for head in EVERY if head != Head("enc", 1, 0)]
    found = role_survival(ROLES, after, EVERY, left)
    rows = [(row["role"], row["layer"], row["head"], row["change"]) for _, row in found.iterrows()]
    assert rows == [
        ("positional", 0, 0, "lost"),
        ("syntactic", 0, 0, "kept"),
        ("rare", 0, 1, "kept"),
        ("sink", 0, 1, "gained"),
        ("sink", 1, 0, "removed"),
    ]
    assert found["rests"].tolist() == [False, False, False, True, True]
    assert list(role_survival(ROLES[:0], after[:0], EVERY, left).columns) == list(found.columns)
