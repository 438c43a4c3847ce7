"""The hard-concrete distribution of a gate: a number in [0, 1] that is often exactly 0 or 1.

Louizos et al. 2018 (eq. 10 to 12), with the constants of Voita et al. 2019 (section 5.1): a
binary concrete variable, stretched to (-0.1, 1.1) and cut off at 0 and 1. `log_a` is what is
learned: the higher, the more open.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = [
    "EPSILON",
    "STRETCH",
    "TEMPERATURE",
    "is_open",
    "p_one",
    "p_open",
    "test_gate",
    "train_gate",
]

TEMPERATURE = 0.33
STRETCH = (-0.1, 1.1)
EPSILON = 1e-6


def train_gate(log_a: Tensor, noise: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """A sample of the gate; `noise` is uniform on (0, 1), and the gradient flows to `log_a`.

    >>> train_gate(torch.zeros(3), torch.tensor([0.01, 0.5, 0.99]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    noise = noise.clamp(EPSILON, 1 - EPSILON)
    logistic = noise.log() - (-noise).log1p()
    return _stretched(torch.sigmoid((logistic + log_a) / temperature))


def test_gate(log_a: Tensor) -> Tensor:
    """The gate without noise and without temperature, as the authors' program tests it.

    >>> test_gate(torch.tensor([-2.4, 0.0, 2.4]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _stretched(torch.sigmoid(log_a))


# pytest would collect a function of this name wherever it is imported.
test_gate.__test__ = False  # type: ignore[attr-defined]


def p_open(log_a: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The probability that the gate is not 0: what the L0 penalty sums (Voita et al., eq. 6).

    >>> p_open(torch.zeros(1))
    tensor([0.6881])
    """
    low, high = STRETCH
    return torch.sigmoid(log_a - temperature * math.log(-low / high)).clamp(EPSILON, 1 - EPSILON)


def p_one(log_a: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The probability that the gate is exactly 1.

    >>> p_one(torch.zeros(1))
    tensor([0.3119])
    """
    low, high = STRETCH
    return torch.sigmoid(log_a - temperature * math.log((1 - low) / (high - 1)))


def is_open(log_a: Tensor) -> Tensor:
    """The gate as the paper tests it: 0 or 1, whichever is more likely; never in between.

    >>> is_open(torch.tensor([-0.1, 0.1]))
    tensor([False,  True])
    """
    return p_one(log_a) > 1 - p_open(log_a)


def _stretched(share: Tensor) -> Tensor:
    low, high = STRETCH
    return (share * (high - low) + low).clamp(0, 1)
