"""Scales: whatever the caller has at hand becomes one number a head, or one a head and example."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headcount.errors import UnknownHead, UsageError
from headcount.records.heads import Head
from headcount.wiring.valves import read_scales

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1), Head("cross", 1, 0)]


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ({}, [1, 1, 1]),
        ({"enc.0.1": 0.0}, [1, 0, 1]),
        ({Head("cross", 1, 0): 2}, [1, 1, 2]),
        ({"enc.0.0": 0.5, "cross.1.0": -1}, [0.5, 1, -1]),
        ({"enc.0.0": True}, [1, 1, 1]),
        (torch.tensor([1, 0, 3]), [1, 0, 3]),
        ({"enc.0.1": torch.tensor([0.0, 0.5])}, [[1, 0, 1], [1, 0.5, 1]]),
        ({"enc.0.1": [0, 1], "enc.0.0": 3.0}, [[3, 0, 1], [3, 1, 1]]),
        (torch.zeros(2, 3), [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_scales_in_the_order_of_the_heads(scales: Any, expected: list[Any]) -> None:
    found = read_scales(scales, HEADS)
    assert found.is_floating_point()
    assert found.tolist() == expected


def test_gradients_reach_the_values_that_were_given() -> None:
    gate = torch.tensor(0.5, requires_grad=True)
    read_scales({"enc.0.1": gate}, HEADS).sum().backward()
    assert gate.grad == 1
    scales = torch.ones(3, requires_grad=True)
    assert read_scales(scales, HEADS) is scales


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        (
            {"enc.0.7": 0.0},
            UnknownHead,
            r"There is no head enc\.0\.7; this model has enc\.0\.0 to enc\.0\.1, cross\.1\.0 to",
        ),
        ({"layer 3": 0.0}, UsageError, "'layer 3' is not a head's name; write stack.layer.head"),
        (
            {"enc.0.0": torch.ones(2, 2)},
            UsageError,
            r"The scale of enc\.0\.0 has shape \(2, 2\); give one number, or one a sentence of the",
        ),
        (
            torch.ones(4),
            UsageError,
            r"A tensor of scales has shape \[3\] or \[batch, 3\] for this model's 3 heads, not \(4",
        ),
        (torch.ones(1, 1, 3), UsageError, r"not \(1, 1, 3\)"),
        (torch.ones(0, 3), UsageError, r"not \(0, 3\)"),
        ({"enc.0.0": []}, UsageError, r"The scale of enc\.0\.0 has shape \(0,\); give one number"),
        ({"enc.0.0": "off"}, UsageError, r"The scale of enc\.0\.0 is 'off'; give a number"),
        ({"enc.0.0": None}, UsageError, r"The scale of enc\.0\.0 is None; give a number"),
        ([0.0, 1.0, 1.0], UsageError, r"Scales are a mapping such as .* or a tensor .* not a list"),
    ],
)
def test_what_is_no_scale(scales: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_scales(scales, HEADS)


def test_examples_that_do_not_fit_each_other() -> None:
    with pytest.raises(UsageError, match=r"scales for 2 examples and enc\.0\.1 for 3; give"):
        read_scales({"enc.0.0": torch.ones(2), "enc.0.1": torch.ones(3)}, HEADS)
