"""Nothing stays attached: after any exit the model is exactly as before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from model_state import assert_same, state_of
from surgery import answer
from tiny import INTERFACE, tiny_inputs

from headcount.models.anatomy import anatomy_of
from headcount.models.subject import Subject
from headcount.text.batch import Batch
from headcount.wiring import seam
from headcount.wiring.taps import tap
from headcount.wiring.valves import valve


def with_valve(subject: Subject) -> AbstractContextManager[Any]:
    return valve(subject, torch.full((len(subject.heads),), 0.3))


@pytest.mark.parametrize("attach", [with_valve, tap], ids=["valve", "tap"])
@pytest.mark.parametrize("ending", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "t5", "marian", "vit"])
def test_everything_is_restored(
    family: str,
    ending: type[BaseException] | None,
    attach: Callable[[Subject], AbstractContextManager[Any]],
) -> None:
    model = INTERFACE[family]()
    for module in model.modules():  # a mode per module, not one for all
        if isinstance(module, torch.nn.LayerNorm):
            module.train()
    subject = Subject(model)
    assert subject.heads
    inputs = tiny_inputs(model)
    before, plain = state_of(subject), answer(model(**inputs))
    try:
        with attach(subject) as attached:
            if attach is tap:
                attached(Batch(inputs, {}, [0, 1]))
            model(**inputs)
            if ending:
                raise ending
    except (ValueError, KeyboardInterrupt):
        pass
    assert_same(before, state_of(subject))
    assert torch.equal(answer(model(**inputs)), plain)
    assert not seam._PARTS


def test_a_break_in_mid_forward_leaves_no_trace() -> None:
    subject = Subject(INTERFACE["albert"]())
    inputs = tiny_inputs(subject.model)

    class BrokenOffError(Exception):
        pass

    def break_off(*_: Any) -> None:
        raise BrokenOffError

    scales = torch.linspace(0, 1, len(subject.heads))
    with valve(subject, scales):
        whole = answer(subject.model(**inputs))
        layer = subject.model.encoder.albert_layer_groups[0].albert_layers[0]
        handle = layer.ffn.register_forward_hook(break_off)
        with pytest.raises(BrokenOffError):
            subject.model(**inputs)
        handle.remove()
        # the layer count starts afresh, although the broken forward had used up one turn
        assert torch.equal(answer(subject.model(**inputs)), whole)


@pytest.mark.parametrize("family", sorted(INTERFACE))
def test_listening_leaves_the_model_alone(family: str) -> None:
    model = INTERFACE[family]().train()
    subject = Subject(model)
    before, noise = state_of(subject), torch.get_rng_state()
    anatomy_of(model)
    assert_same(before, state_of(subject))
    assert torch.equal(noise, torch.get_rng_state())


def test_another_model_of_the_same_config_is_not_touched() -> None:
    first = INTERFACE["bert"]()
    other = type(first)(first.config).eval()
    inputs = tiny_inputs(other)
    plain = answer(other(**inputs))
    with valve(Subject(first), {"enc.0.0": 0.0}):
        assert torch.equal(answer(other(**inputs)), plain)
