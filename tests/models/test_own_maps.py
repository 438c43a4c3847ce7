"""A model's own maps: asked for on the eager path, all of them or an error."""

from __future__ import annotations

import pytest
import torch
from tiny import OUTSIDE, TINY, tiny_inputs

from headcount.errors import UnsupportedModel
from headcount.models.dummy_forward import own_maps


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
