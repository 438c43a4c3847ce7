"""Functions as steps: what relevance does at each, on tensors small enough to check by eye."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.errors import UnsupportedModel
from headcount.rooms.relevance.rule import Cut, RelevanceCounter
from headcount.rooms.relevance.rules import rule_named
from headcount.rooms.relevance.trace import Tracer


def back(
    function: Callable[[Tensor], Tensor], x: Tensor, told: Tensor, rule: str = "z+ extended"
) -> Tensor:
    """Relevance of x."""
    ledger = RelevanceCounter(rows=1)
    ledger.enter(Cut("enc", 0, ledger.counter(x), []), x)
    x = x.clone().requires_grad_()
    with Tracer(rule_named(rule), ledger, "mine"):
        made = function(x)
    return torch.autograd.grad(made, x, told, materialize_grads=True)[0]


@pytest.mark.parametrize("rule", ["ding", "z+", "alpha-beta"])
def test_a_pass_leaves_nothing_behind(rule: str) -> None:
    def run() -> weakref.ref[Tensor]:
        ledger = RelevanceCounter(rows=1)
        ledger.enter(Cut("enc", 0, ledger.counter(X), []), X)
        x = X.clone().requires_grad_() * 1
        with Tracer(rule_named(rule), ledger, "mine"):
            functional.linear(x, torch.ones(2, 2)).sum(dim=-1)
        return weakref.ref(x)

    held = run()
    gc.collect()
    assert held() is None


X = torch.tensor([[1.0, 3.0]])
ONE = torch.ones(1, 2)


def assert_shared(found: Tensor, *rows: list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor([*rows]), atol=1e-5, rtol=1e-5)


def test_a_sum_is_shared_in_proportion() -> None:
    found = back(lambda x: x[:, :1] + x[:, 1:], X, torch.tensor([[8.0]]))
    assert_shared(found, [2.0, 6.0])


def test_of_a_difference_signs_are_lost_and_the_total_kept() -> None:
    found = back(lambda x: x[:, :1] - x[:, 1:], X, torch.tensor([[2.0]]))
    assert_shared(found, [0.5, 1.5])


def test_a_constant_is_no_neuron() -> None:
    assert_shared(back(lambda x: 1.0 + x, X, ONE), [1.0, 1.0])


def test_what_is_added_in_place_is_added() -> None:
    def grown(x: Tensor) -> Tensor:
        y = x * 2
        y += x
        return y

    assert_shared(back(grown, X, ONE), [1.0, 1.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: -3.0 * x,
        lambda x: x / 7,
        lambda x: x * torch.tensor([[2.0, -5.0]]),
        lambda x: functional.gelu(x),
        lambda x: torch.tanh(x),
        lambda x: functional.dropout(x, 0.5, training=False),
        lambda x: x.double().float(),
    ],
)
def test_factors_and_activations_pass_relevance_on(function: Callable[[Tensor], Tensor]) -> None:
    """Also a factor of -1, where a gradient would change its sign."""
    assert back(function, X, ONE).tolist() == [[1.0, 1.0]]


def test_a_factor_of_zero_lets_nothing_through() -> None:
    assert back(lambda x: x * torch.tensor([1.0, 0.0]), X, ONE).tolist() == [[1.0, 0.0]]


def test_a_product_gives_half_to_each_side_where_the_rule_is_extended() -> None:
    found = back(lambda x: x[:, :1] * x[:, 1:], X, torch.tensor([[8.0]]))
    assert_shared(found, [4.0, 4.0])
    assert_shared(back(lambda x: x[:, :1] * x, X, ONE), [1.5, 0.5])
    with pytest.raises(UnsupportedModel, match=r"'z\+' has no definition for a product of two act"):
        back(lambda x: x[:, :1] * x, X, ONE, "z+")


def test_a_mean_is_shared_in_proportion() -> None:
    assert_shared(back(lambda x: x.mean(dim=1), X, torch.tensor([8.0])), [2.0, 6.0])
    found = back(lambda x: x.sum(1, keepdim=True), X, torch.tensor([[8.0]]))
    assert_shared(found, [2.0, 6.0])


@pytest.mark.parametrize("rule", ["ding", "z+", "alpha-beta"])
def test_a_dense_layer_in_all_its_forms(rule: str) -> None:
    weight, bias = torch.tensor([[1.0, 2.0], [0.5, -1.0]]), torch.tensor([0.5, 0.25])
    forms = {
        "linear": lambda x: functional.linear(x, weight, bias),
        "addmm": lambda x: torch.addmm(bias, x, weight.T),
    }
    found = [back(form, X, ONE, rule) for form in forms.values()]
    torch.testing.assert_close(found[0], found[1])
    assert float(found[0].sum()) == pytest.approx(2.0, abs=1e-4)
    bare = back(lambda x: x @ weight.T, X, ONE, rule)
    assert float(bare.sum()) == pytest.approx(2.0, abs=1e-4)


def test_layers_on_one_input_settle_as_one() -> None:
    """Fused queries, keys and values, as the authors' programs have them."""
    weight = torch.tensor([[1.0, -2.0], [0.5, 1.0], [2.0, 0.3]])

    def apart(x: Tensor) -> Tensor:
        return torch.cat([functional.linear(x, weight[:1]), functional.linear(x, weight[1:])], 1)

    told = torch.tensor([[1.0, 0.3, 0.2]])
    ours = back(apart, -X, told, "z+")
    fused = back(lambda x: functional.linear(x, weight), -X, told, "z+")
    torch.testing.assert_close(ours, fused)


@pytest.mark.parametrize("rule", ["z+ extended", "alpha-beta extended"])
def test_norms(rule: str) -> None:
    norm = nn.LayerNorm(4)
    with torch.no_grad():
        norm.bias += torch.tensor([0.1, 0.2, -0.3, 0.1])
    norm.requires_grad_(False)
    x, told = torch.tensor([[1.0, 3.0, -2.0, 0.5]]), torch.tensor([[0.5, 0.2, 0.2, 0.1]])
    found = back(norm, x, told, rule)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-4)
    rms = back(lambda y: functional.rms_norm(y, (4,)), x, told, rule)
    assert float(rms.sum()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.softmax(-1), "mine calls torch.Tensor.softmax, which no relevance rule"),
        (lambda x: torch.exp(x), "mine calls torch.exp, which no relevance rule"),
        (lambda x: 1.0 / x, "which no relevance rule covers"),
        (lambda x: x / x, "a division by a number that depends on the input"),
        (lambda x: x.sum(), "a sum over all examples"),
        (lambda x: x @ x.T, "a dense layer whose weights depend on the input"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(
    function: Callable[[Tensor], Tensor], words: str
) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        back(function, X, ONE)
