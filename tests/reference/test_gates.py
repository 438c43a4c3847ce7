"""Voita et al.'s gates, from their program, matched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headcount.rooms.gates import gates as concrete

THEIRS = np.load(Path(__file__).parent / "voita_gates.npz")


def theirs(name: str) -> torch.Tensor:
    return torch.tensor(THEIRS[name])


def test_sampled_gates_and_their_gradient() -> None:
    log_a = theirs("log_a").requires_grad_(True)
    gate = concrete.train_gate(log_a, theirs("noise_u"))
    torch.testing.assert_close(gate, theirs("train_gate_for_noise"), atol=1e-6, rtol=0)
    gate.sum().backward()
    torch.testing.assert_close(log_a.grad, theirs("d_train_gate_d_log_a"), atol=1e-6, rtol=0)


def test_gates_under_test() -> None:
    gate = concrete.test_gate(theirs("log_a"))
    torch.testing.assert_close(gate, theirs("test_gate"), atol=1e-6, rtol=0)
    assert (gate != 0).float().mean().item() == pytest.approx(float(THEIRS["sparsity_rate_test"]))


def test_penalty_and_its_gradient() -> None:
    log_a = theirs("log_a").requires_grad_(True)
    penalty = concrete.p_open(log_a)
    torch.testing.assert_close(penalty, theirs("p_open"), atol=1e-6, rtol=0)
    assert penalty.sum().item() == pytest.approx(float(THEIRS["penalty_sum"]), abs=1e-5)
    penalty.sum().backward()
    torch.testing.assert_close(log_a.grad, theirs("d_penalty_d_log_a"), atol=1e-6, rtol=0)
