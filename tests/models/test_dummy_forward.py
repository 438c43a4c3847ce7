"""One thread at a time hangs things on a model; the same thread as often as it likes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from tiny import OUTSIDE, TINY, tiny_inputs

from headcount.errors import UnsupportedModel, UsageError
from headcount.models import dummy_forward as room
from headcount.models.anatomy import anatomy_of
from headcount.models.dummy_forward import capture_hooks_off, locked
from headcount.models.subject import Subject
from headcount.rooms.outside.outside import own_maps
from headcount.wiring import tap, valve


def raised_in_a_thread(work: Callable[[], Any]) -> list[BaseException]:
    """What another thread's work raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


@pytest.mark.parametrize("opened", [tap, lambda subject: valve(subject, {})], ids=["tap", "valve"])
def test_another_thread_is_refused_until_the_block_ends(
    opened: Callable[[Subject], AbstractContextManager[Any]],
) -> None:
    subject = Subject(TINY["bert"]())
    assert subject.heads

    def elsewhere() -> None:
        with opened(subject):
            pass

    with opened(subject), opened(subject):
        (error,) = raised_in_a_thread(elsewhere)
        assert isinstance(error, UsageError)
        assert "BertModel is being read or scaled in another thread" in str(error)
        (error,) = raised_in_a_thread(lambda: anatomy_of(subject.model))
        assert isinstance(error, UsageError)
    assert raised_in_a_thread(elsewhere) == []
    assert not room._HOLDERS


def test_other_models_are_free() -> None:
    with locked(TINY["bert"]()):
        assert raised_in_a_thread(lambda: anatomy_of(TINY["bert"]())) == []


# --- A model's own maps -------------------------------------------------------------------------


def test_each_stack_of_a_translator_has_its_maps() -> None:
    model = OUTSIDE["mvp"]()
    found = own_maps(model, tiny_inputs(model))
    shapes = {stack: found.of(stack, layers)[0].shape for stack, layers in STACKS.items()}
    assert shapes == {"enc": (2, 4, 7, 7), "dec": (2, 4, 5, 5), "cross": (2, 4, 5, 7)}


STACKS = {"enc": 2, "dec": 3, "cross": 3}


def test_the_first_output_comes_along() -> None:
    model = OUTSIDE["gptj"]()
    inputs = tiny_inputs(model)
    assert torch.equal(own_maps(model, inputs).first, model(**inputs).logits)


def test_a_model_whose_config_says_tuples_gives_its_maps_too() -> None:
    model = OUTSIDE["mpnet"](return_dict=False)
    assert len(own_maps(model, tiny_inputs(model)).of("enc", 2)) == 2


def test_every_config_says_eager_for_the_call_and_itself_afterwards() -> None:
    model = OUTSIDE["falcon"]()
    said = []
    model.register_forward_pre_hook(lambda *_: said.append(model.config._attn_implementation))
    own_maps(model, tiny_inputs(model))
    assert said == ["eager"]
    assert model.config._attn_implementation == "sdpa"


def test_a_forward_that_raises_leaves_hooks_and_config() -> None:
    model = OUTSIDE["xglm"](attn_implementation="eager")
    layer = model.model.layers[1].self_attn
    handle = layer.register_forward_hook(_break)
    before = [list(module._forward_hooks) for module in model.modules()]
    with pytest.raises(ZeroDivisionError):
        own_maps(model, tiny_inputs(model))
    assert [list(module._forward_hooks) for module in model.modules()] == before
    assert "_output_capturing_hooks_installed" not in vars(model.model)
    handle.remove()


def test_hooks_of_transformers_are_off_and_back_in_their_order() -> None:
    """A model that was asked for hidden states has them for good; they cannot be pickled."""
    model = TINY["bert"]()
    model(**tiny_inputs(model), output_hidden_states=True)
    layer = model.encoder.layer[0]
    handle = layer.register_forward_hook(lambda *_: None)
    before = [list(module._forward_hooks) for module in model.modules()]
    assert len(layer._forward_hooks) == 2
    with capture_hooks_off(model):
        assert list(layer._forward_hooks) == [handle.id]
        assert "_output_capturing_hooks_installed" not in vars(model)
        model(**tiny_inputs(model), output_hidden_states=True)  # hangs new ones
    assert [list(module._forward_hooks) for module in model.modules()] == before
    assert len(model(**tiny_inputs(model), output_hidden_states=True).hidden_states) == 3


def _break(*_: object) -> None:
    raise ZeroDivisionError


def test_no_maps_are_an_error_that_names_the_class() -> None:
    model = TINY["mamba"]()
    inputs = {"input_ids": tiny_inputs(model)["input_ids"]}
    model.register_forward_pre_hook(
        lambda _, args, named: (args, {n: v for n, v in named.items() if n != "output_attentions"}),
        with_kwargs=True,
    )
    with pytest.raises(UnsupportedModel, match="MambaModel gave 0 attention maps in `attentions`"):
        own_maps(model, inputs).of("dec", 2)
