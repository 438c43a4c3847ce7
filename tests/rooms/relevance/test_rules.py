"""The rules step by step: what each keeps, for any shape."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headcount.rooms.relevance.rule import Attending, Dense, Rule
from headcount.rooms.relevance.rules import AlphaBeta, ZPlus, ding_attention, ding_dense

SHAPES = [(5,), (3, 5), (2, 3, 5)]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def settled(rule: Rule, x: Tensor, weight: Tensor, bias: Tensor | None, told: Tensor) -> Tensor:
    """What comes through one dense layer, row by row."""
    flow = rule.dense(Dense(x, weight, bias, x), told)
    return rule.settle(flow, told.abs().flatten(1).sum(1))


@pytest.mark.parametrize("shape", SHAPES)
def test_dense_layers_keep_the_sum(shape: tuple[int, ...]) -> None:
    x, weight, told = drawn(*shape), drawn(5, 4, seed=1), drawn(*shape[:-1], 4, seed=3)
    torch.testing.assert_close(ding_dense(x, weight, told).sum(-1), told.sum(-1))


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_program_of_2019_keeps_totals_and_drops_signs(shape: tuple[int, ...]) -> None:
    x, weight, told = drawn(*shape), drawn(5, 4, seed=1), drawn(*shape[:-1], 4, seed=3).abs()
    rows = settled(ZPlus(), x, weight, None, told)
    assert bool((rows >= 0).all())
    torch.testing.assert_close(rows.flatten(1).sum(1), told.flatten(1).sum(1))
    pairs = zip(x, told, strict=True)
    single = [settled(ZPlus(), one[None], weight, None, given[None]) for one, given in pairs]
    torch.testing.assert_close(rows, torch.cat(single))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_program_of_2021_keeps_absolute_totals(shape: tuple[int, ...], bias: bool) -> None:
    x, weight, told = drawn(*shape), drawn(5, 4, seed=1), drawn(*shape[:-1], 4, seed=3)
    shift = drawn(4, seed=2) if bias else None
    found = settled(AlphaBeta(), x, weight, shift, told)
    torch.testing.assert_close(
        found.abs().flatten(1).sum(1), told.abs().flatten(1).sum(1), rtol=1e-4, atol=0
    )
    assert bool((settled(AlphaBeta(), x, weight, shift, told.abs()) >= 0).all())


def test_without_a_bias_matrix_products_are_the_sums_they_stand_for() -> None:
    x, weight, told = drawn(3, 5), drawn(5, 4, seed=1), drawn(3, 4, seed=2)
    slow = settled(AlphaBeta(), x, weight, torch.zeros(4, dtype=x.dtype), told)
    torch.testing.assert_close(settled(AlphaBeta(), x, weight, None, told), slow)


def test_attention_keeps_the_sum_with_shared_keys() -> None:
    q, told = drawn(2, 4, 3, 6), drawn(2, 4, 3, 6, seed=1)
    k, v = drawn(2, 2, 5, 6, seed=2), drawn(2, 2, 5, 6, seed=3)
    keys, values = (x.repeat_interleave(2, dim=1) for x in (k, v))
    weights = (q @ keys.mT).softmax(-1)
    call = Attending(q, k, v, weights, weights @ values, 1.0)
    found = torch.stack([part.sum() for part in ding_attention(call, told)]).sum()
    torch.testing.assert_close(found, told.sum(), rtol=1e-5, atol=0)


def test_a_sum_of_zero_gives_no_infinity() -> None:
    found = ding_dense(torch.tensor([1.0, 1.0]), torch.tensor([[1.0], [-1.0]]), torch.ones(1))
    assert bool(found.isfinite().all())
    zero = settled(ZPlus(), torch.zeros(1, 2), torch.ones(2, 1), None, torch.zeros(1, 1))
    assert zero.tolist() == [[0.0, 0.0]]
