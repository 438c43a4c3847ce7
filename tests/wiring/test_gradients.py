"""The backflow: head outputs with their gradients, and a model that is as before."""

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import suppress
from typing import Any

import pytest
import torch
from surgery import answer
from tiny import INTERFACE, TINY, tiny_inputs
from torch import Tensor

from headcount.errors import UnsupportedModel
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.rooms.resting.noop import weights_gradient
from headcount.wiring import seam
from headcount.wiring.valves import backflow


def subject_of(family: str) -> Subject:
    return Subject(INTERFACE[family](), name=family)


@pytest.mark.parametrize("family", ["bert", "albert", "t5", "marian"])
def test_every_site_is_shown_once_with_its_shape(family: str) -> None:
    subject = subject_of(family)
    shown: list[tuple[Site, torch.Size, torch.Size]] = []
    inputs = tiny_inputs(subject.model)
    with backflow(subject, lambda site, o, g: shown.append((site, o.shape, g.shape))) as flow:
        flow.backward(answer(subject.model(**inputs)).square().sum())
    assert {site for site, *_ in shown} == set(subject.anatomy.sites)
    assert len(shown) == len(subject.anatomy.sites)
    for site, output, gradient in shown:
        assert output == gradient
        assert (output[0], *output[2:]) == (2, site.heads, site.head_dim)


def test_the_forward_is_the_plain_one() -> None:
    subject = subject_of("bert")
    inputs = tiny_inputs(subject.model, pad=2)
    with torch.no_grad():
        plain = answer(subject.model(**inputs))
    with backflow(subject, lambda *_: None):
        assert torch.equal(answer(subject.model(**inputs)).detach(), plain)


def test_a_forward_without_a_backward_is_forgotten() -> None:
    subject = subject_of("bert")
    shown: list[Tensor] = []
    inputs = tiny_inputs(subject.model)
    with backflow(subject, lambda site, o, g: shown.append(g)) as flow:
        subject.model(**inputs)
        flow.backward(answer(subject.model(**inputs)).sum())
        assert len(shown) == len(subject.anatomy.sites)


def test_nothing_is_kept_after_a_batch() -> None:
    subject = subject_of("bert")
    outputs: list[weakref.ref[Tensor]] = []
    with backflow(subject, lambda site, o, g: outputs.append(weakref.ref(o))) as flow:
        gc.disable()  # a cycle would hide behind the collector
        try:
            flow.backward(answer(subject.model(**tiny_inputs(subject.model))).sum())
            assert outputs
            assert all(output() is None for output in outputs)
        finally:
            gc.enable()


# --- Gradients of attention weights -------------------------------------------------------------


Cell = tuple[int, int, int, int]  # batch, head, query, key


def loss_of(subject: Subject, inputs: dict[str, Tensor]) -> Tensor:
    """Some number that every layer has a say in."""
    first = subject.model(**inputs)[0]
    return (first * torch.linspace(-1, 1, first.shape[-1])).square().sum()


def nudged(
    monkeypatch: pytest.MonkeyPatch, subject: Subject, layer: int, cell: Cell, step: float
) -> None:
    """Let the family's own attention add a step to one weight of one layer, after the softmax."""
    module = subject.model.get_submodule(subject.anatomy.sites[layer].module)
    home: Any = sys.modules[type(module).__module__]
    own = home.eager_attention_forward

    def attend(asked: Any, query: Tensor, key: Tensor, value: Tensor, *more: Any, **named: Any):
        output, weights = own(asked, query, key, value, *more, **named)
        if asked is not module:
            return output, weights
        groups = query.shape[1] // value.shape[1]
        change = torch.zeros_like(weights)
        change[cell] = step
        moved = change @ value.repeat_interleave(groups, dim=1)
        return output + moved.transpose(1, 2), weights + change

    monkeypatch.setattr(home, "eager_attention_forward", attend)


# Llama takes its softmax and its norms in float32, whatever its dtype: no tiny steps there.
@pytest.mark.parametrize(
    ("family", "step", "close"),
    [("bert", 1e-6, 1e-5), ("gpt2", 1e-6, 1e-5), ("llama", 1e-3, 1e-3), ("bart", 1e-6, 1e-5)],
)
@pytest.mark.parametrize("layer", [0, 1])
def test_it_is_the_slope_of_the_loss(
    family: str, step: float, close: float, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = INTERFACE[family]().double()
    model.set_attn_implementation("eager")
    subject, inputs = Subject(model), tiny_inputs(model)
    with weights_gradient(subject) as gradient:
        slopes = {slope.site: slope for slope in gradient.of(loss_of(subject, inputs))}
    assert set(slopes) == set(subject.anatomy.sites)
    cell = (1, 2, 3, 1)
    found = slopes[subject.anatomy.sites[layer]].gradient[cell]
    with torch.no_grad():
        nudged(monkeypatch, subject, layer, cell, step)
        above = loss_of(subject, inputs)
        monkeypatch.undo()
        nudged(monkeypatch, subject, layer, cell, -step)
        below = loss_of(subject, inputs)
    assert found != 0
    torch.testing.assert_close(found, (above - below) / (2 * step), rtol=close, atol=1e-8)


def test_a_model_that_was_frozen_answers_too_and_stays_frozen() -> None:
    model = INTERFACE["bert"]().requires_grad_(False)
    subject, inputs = Subject(model), tiny_inputs(model)
    with weights_gradient(subject) as gradient:
        slopes = gradient.of(loss_of(subject, inputs))
    assert all(float(slope.gradient.abs().max()) > 0 for slope in slopes)
    assert not any(weight.requires_grad for weight in model.parameters())


def test_nothing_stays_attached_and_no_weight_has_a_gradient() -> None:
    model = INTERFACE["bert"]().train()
    subject, inputs = Subject(model), tiny_inputs(model)
    names = [weight.requires_grad for weight in model.parameters()]
    with suppress(KeyboardInterrupt), weights_gradient(subject) as gradient:
        gradient.of(loss_of(subject, inputs))
        raise KeyboardInterrupt
    assert model.training
    assert not seam._PARTS
    assert [weight.requires_grad for weight in model.parameters()] == names
    assert all(weight.grad is None for weight in model.parameters())


def test_a_stack_that_the_loss_does_not_see_is_left_out() -> None:
    model = INTERFACE["bart"]()
    subject, inputs = Subject(model), tiny_inputs(model)
    with weights_gradient(subject) as gradient:
        hidden = model(**inputs).encoder_last_hidden_state
        slopes = gradient.of(hidden.square().sum())
    assert {slope.site.stack for slope in slopes} == {"enc"}


def test_families_outside_the_interface_are_refused() -> None:
    subject = Subject(TINY["gptj"](), name="mine")
    with (
        pytest.raises(UnsupportedModel, match=r"mine does not speak .* while they are part of the"),
        weights_gradient(subject),
    ):
        pass
