"""The rules as functions: what each keeps, for any shape."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headcount.importance.lrp import rule, rules

SHAPES = [(5,), (3, 5), (2, 3, 5)]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", SHAPES)
def test_dense_layers_keep_the_sum(shape: tuple[int, ...]) -> None:
    x, weight, bias = drawn(*shape), drawn(5, 4, seed=1), drawn(4, seed=2)
    told = drawn(*shape[:-1], 4, seed=3)
    inputs, kept = rule.epsilon_dense(x, weight, bias, told)
    assert kept is not None
    torch.testing.assert_close(inputs.sum(-1) + kept.sum(-1), told.sum(-1))
    torch.testing.assert_close(rules.ding_dense(x, weight, told).sum(-1), told.sum(-1))


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_program_of_2019_keeps_totals_and_drops_signs(shape: tuple[int, ...]) -> None:
    x, weight, told = drawn(*shape), drawn(5, 4, seed=1), drawn(*shape[:-1], 4, seed=3).abs()
    whole = rules.z_plus_dense(x, weight, told)
    assert bool((whole >= 0).all())
    torch.testing.assert_close(whole.sum(), told.sum())
    rows = rules.z_plus_dense(x, weight, told, batched=True)
    torch.testing.assert_close(rows.flatten(1).sum(1), told.flatten(1).sum(1))
    pairs = zip(x, told, strict=True)
    alone = torch.stack([rules.z_plus_dense(one, weight, given) for one, given in pairs])
    torch.testing.assert_close(rows, alone)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_program_of_2021_keeps_absolute_totals(shape: tuple[int, ...], bias: bool) -> None:
    x, weight, told = drawn(*shape), drawn(5, 4, seed=1), drawn(*shape[:-1], 4, seed=3)
    shift = drawn(4, seed=2) if bias else None
    found = rules.alpha_beta_dense(x, weight, shift, told)
    torch.testing.assert_close(
        found.abs().flatten(1).sum(1), told.abs().flatten(1).sum(1), rtol=1e-4, atol=0
    )
    assert bool((rules.alpha_beta_dense(x, weight, shift, told.abs()) >= 0).all())


def test_without_a_bias_matrix_products_are_the_sums_they_stand_for() -> None:
    x, weight, told = drawn(3, 5), drawn(5, 4, seed=1), drawn(3, 4, seed=2)
    slow = rules.alpha_beta_dense(x, weight, torch.zeros(4, dtype=x.dtype), told)
    torch.testing.assert_close(rules.alpha_beta_dense(x, weight, None, told), slow)


def test_attention_keeps_the_sum_with_shared_keys() -> None:
    q, told = drawn(2, 4, 3, 6), drawn(2, 4, 3, 6, seed=1)
    k, v = drawn(2, 2, 5, 6, seed=2), drawn(2, 2, 5, 6, seed=3)
    keys, values = (x.repeat_interleave(2, dim=1) for x in (k, v))
    weights = (q @ keys.mT).softmax(-1)
    ours = rule.epsilon_attention(v, weights, told)
    assert ours.shape == v.shape
    torch.testing.assert_close(ours.sum(), told.sum())
    apart = rule.epsilon_attention(values, weights, told)
    torch.testing.assert_close(ours, apart.unflatten(1, (2, 2)).sum(2))
    text = rules.ding_attention(q, k, v, weights, told)
    found = torch.stack([part.sum() for part in text]).sum()
    torch.testing.assert_close(found, told.sum(), rtol=1e-5, atol=0)


def test_a_sum_of_zero_gives_no_infinity() -> None:
    found = rules.ding_dense(torch.tensor([1.0, 1.0]), torch.tensor([[1.0], [-1.0]]), torch.ones(1))
    assert bool(found.isfinite().all())
    assert rules.z_plus_dense(torch.zeros(1, 2), torch.ones(2, 1), torch.zeros(1, 1)).tolist() == [
        [0.0, 0.0]
    ]
