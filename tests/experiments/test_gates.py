"""The gates' experiment: its own head scales do what the valve does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

import headcount as hc
from experiments.gates.scaled import Scaled
from tests.tiny import PAIRS


def test_scales_inside_the_modules_equal_the_valve() -> None:
    plain = hc.Subject(PAIRS["marian"]())
    own = hc.Subject(deepcopy(plain.model))
    scaled, count = Scaled(own), len(plain.heads)
    scales = torch.linspace(0, 1, count).requires_grad_(True)
    ids = torch.tensor([[5, 6, 7, 0], [8, 9, 4, 0]])
    given: dict[str, Any] = {"input_ids": ids, "decoder_input_ids": ids.flip(1)}
    with hc.valve(plain, scales):
        logits = plain.model(**given).logits
    logits.square().sum().backward()
    scaled.set(scales.detach())
    found = own.model(**given).logits
    found.square().sum().backward()
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=1e-5)
    assert scales.grad is not None
    torch.testing.assert_close(scaled.gradient(), scales.grad, atol=1e-4, rtol=1e-4)
