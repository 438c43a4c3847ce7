"""Under gradient checkpointing a recompute sees the scales and the site of its forward."""

from __future__ import annotations

import pytest
import torch
from surgery import answer
from tiny import INTERFACE, tiny_inputs
from torch.utils.checkpoint import checkpoint

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.wiring import valve

FAMILIES = ["bert", "llama", "gpt2", "marian", "t5"]


def still(family: str) -> Subject:
    """A model in training mode without dropout, so that runs can be compared."""
    model = INTERFACE[family]().train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "activation_dropout", "dropout_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return Subject(model)


def gradient(subject: Subject, *, reentrant: bool | None) -> torch.Tensor:
    model = subject.model
    if reentrant is not None:
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
    scales = torch.linspace(0.5, 1.5, len(subject.heads)).requires_grad_()
    with valve(subject, scales):
        answer(model(**tiny_inputs(model, pad=2))).square().mean().backward()
    assert scales.grad is not None
    return scales.grad


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_equal_those_without_checkpointing(family: str, reentrant: bool) -> None:
    plain = gradient(still(family), reentrant=None)
    assert (plain.abs() > 0).all()
    replayed = gradient(still(family), reentrant=reentrant)
    torch.testing.assert_close(replayed, plain, atol=1e-6, rtol=1e-4)


def test_a_later_valve_does_not_change_an_earlier_forward() -> None:
    subject = still("llama")
    subject.model.gradient_checkpointing_enable({"use_reentrant": False})
    inputs = tiny_inputs(subject.model)
    scales = torch.ones(len(subject.heads), requires_grad=True)
    with valve(subject, scales) as opened:
        loss = answer(subject.model(**inputs)).square().mean()
        opened.scales = torch.zeros(len(subject.heads))
        loss.backward()
    assert scales.grad is not None
    late, scales.grad = scales.grad.clone(), None
    with valve(subject, scales):
        answer(subject.model(**inputs)).square().mean().backward()
    torch.testing.assert_close(late, scales.grad)


@pytest.mark.parametrize("reentrant", [False, True])
def test_backward_after_the_block_is_refused(reentrant: bool) -> None:
    subject = still("bert")
    subject.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    subject.model.enable_input_require_grads()
    with valve(subject, {"enc.0.0": 0.5}):
        loss = answer(subject.model(**tiny_inputs(subject.model))).square().mean()
    with pytest.raises(UsageError, match="closed before backward"):
        loss.backward()


def test_a_shared_module_recomputed_by_hand_is_refused() -> None:
    """ALBERT calls one module for all layers: a recompute that nobody announced has no layer."""
    subject = still("albert")
    layer = subject.model.encoder.albert_layer_groups[0].albert_layers[0]
    plain = layer.attention.forward

    def checkpointed(*args: torch.Tensor, **kwargs: torch.Tensor) -> object:
        return checkpoint(plain, *args, use_reentrant=False, **kwargs)

    layer.attention.forward = checkpointed
    with valve(subject, torch.ones(len(subject.heads), requires_grad=True)):
        loss = answer(subject.model(**tiny_inputs(subject.model))).square().mean()
        with pytest.raises(UsageError, match="serves several layers"):
            loss.backward()
