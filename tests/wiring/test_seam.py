"""Valves on families outside the attention interface: every law that holds inside holds here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from surgery import answer
from tiny import OUTSIDE, tiny_inputs
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.models.switch import attention_configs
from headcount.records.heads import Head
from headcount.rooms.outside.outside import family_of
from headcount.wiring import valve

FAMILIES = sorted(OUTSIDE)
#: The families of which `generate` keeps a cache.
CACHED = ["bloom", "codegen", "falcon", "fsmt", "gpt_neo", "gpt_neox_japanese", "gptj", "mpt"]
CACHED += ["mvp", "xglm"]
#: The families that cannot run in double precision.
SINGLE = ["fsmt", "xglm"]


@pytest.fixture(scope="module", params=FAMILIES)
def subject(request: pytest.FixtureRequest) -> Subject:
    model = OUTSIDE[request.param]()
    return Subject(model if request.param in SINGLE else model.double())


def close(subject: Subject, one: Tensor, other: Tensor) -> None:
    """Equal to 1e-6; to 1e-5 in single precision."""
    room = 1e-6 if subject.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(one, other, atol=room, rtol=room)


def run(subject: Subject, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return answer(subject.model(**inputs))


@contextmanager
def zeroed(subject: Subject, head: Head) -> Iterator[None]:
    """Zero what the output projection takes from a head, in the weights."""
    site = subject.anatomy.site(head.stack, head.layer)
    attention = subject.model.get_submodule(site.module)
    columns = slice(head.index * site.head_dim, (head.index + 1) * site.head_dim)
    if subject.model.config.model_type == "xlnet":  # its projection is [width, head, dim]
        weight, place = attention.o, (slice(None), head.index)
    else:
        projection = attention.get_submodule(family_of(subject.model).projection)
        turned = type(projection).__name__ == "Conv1D"
        place = (columns, slice(None)) if turned else (slice(None), columns)
        weight = projection.weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight[place] = 0
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_scale_one_changes_no_bit(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, pad=2)
    plain = run(subject, inputs)
    with valve(subject, torch.ones(len(subject.heads))):
        assert torch.equal(run(subject, inputs), plain)


def test_scale_zero_equals_zeroed_weights_for_every_head(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, pad=2)
    plain = run(subject, inputs)
    for head in subject.heads:
        with valve(subject, {head: 0.0}):
            shut = run(subject, inputs)
        assert not torch.allclose(shut, plain, atol=1e-4), head
        with zeroed(subject, head):
            close(subject, shut, run(subject, inputs))


def test_scales_of_one_example_equal_a_run_of_its_own(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    noise = torch.Generator().manual_seed(1)
    scales = torch.rand(3, len(subject.heads), generator=noise)
    with valve(subject, scales):
        together = run(subject, inputs)
    for example in range(3):
        alone = {name: value[example : example + 1] for name, value in inputs.items()}
        with valve(subject, scales[example]):
            close(subject, run(subject, alone)[0], together[example])


def test_nested_valves_multiply(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model)
    first, last = subject.heads[0], subject.heads[-1]
    with valve(subject, {first: 0.5, last: 0.5}), valve(subject, {last: 0.5}):
        nested = run(subject, inputs)
    with valve(subject, {first: 0.5, last: 0.25}):
        close(subject, nested, run(subject, inputs))


def test_gradients_of_scales_equal_finite_differences(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, pad=2)
    ones = torch.ones(len(subject.heads), dtype=torch.float64)
    scales = ones.clone().requires_grad_()
    with valve(subject, scales):
        answer(subject.model(**inputs)).square().mean().backward()
    assert scales.grad is not None
    assert scales.grad.isfinite().all()
    assert scales.grad.abs().min() > 0
    # some families attend in float32 whatever the weights are: a small step would drown in that
    place, step, losses = len(ones) // 2, 1e-2, []
    for moved in (ones.clone(), ones.clone()):
        moved[place] += step if not losses else -step
        with valve(subject, moved):
            losses.append(run(subject, inputs).square().mean().item())
    slope = (losses[0] - losses[1]) / (2 * step)
    assert scales.grad[place].item() == pytest.approx(slope, rel=1e-3, abs=1e-5)


HOOKS = [name for name in vars(torch.nn.Module()) if name.endswith("_hooks")]


def state_of(subject: Subject) -> dict[str, Any]:
    """Everything that could be left behind, weights aside."""
    modules = list(subject.model.modules())
    return {
        "hooks": [[list(getattr(module, name)) for name in HOOKS] for module in modules],
        "attributes": [sorted(vars(module)) for module in modules],
        "training": [module.training for module in modules],
        "configs": [config.to_json_string() for config in attention_configs(subject.model)],
        "attention": [config._attn_implementation for config in attention_configs(subject.model)],
    }


@pytest.mark.parametrize("ending", [None, ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_any_exit(
    subject: Subject, ending: type[BaseException] | None
) -> None:
    inputs = tiny_inputs(subject.model)
    half = torch.full((len(subject.heads),), 0.5)
    before, plain = state_of(subject), run(subject, inputs)
    try:
        with valve(subject, half), valve(subject, half):
            assert not torch.equal(run(subject, inputs), plain)
            assert state_of(subject)["attention"] == before["attention"]
            if ending:
                raise ending
    except (ValueError, KeyboardInterrupt):
        pass
    assert state_of(subject) == before
    assert torch.equal(run(subject, inputs), plain)


def test_an_inner_valve_leaves_the_outer_one_at_work(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model)
    head = subject.heads[0]
    with valve(subject, {head: 0.0}):
        shut = run(subject, inputs)
        with valve(subject, {subject.heads[-1]: 0.0}):
            assert not torch.equal(run(subject, inputs), shut)
        assert torch.equal(run(subject, inputs), shut)


def test_a_forward_that_breaks_leaves_nothing(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, batch=2)
    before = state_of(subject)
    with (
        pytest.raises(UsageError, match="scales for 3 examples"),
        valve(subject, torch.ones(3, len(subject.heads))),
    ):
        subject.model(**inputs)
    assert state_of(subject) == before


@pytest.mark.parametrize("family", CACHED)
def test_generate_with_a_cache_equals_zeroed_weights(family: str) -> None:
    subject = Subject(OUTSIDE[family]())
    inputs = tiny_inputs(subject.model)
    inputs.pop("decoder_input_ids", None)
    settings = {"max_new_tokens": 6, "do_sample": False, "use_cache": True, "num_beams": 2}
    plain = subject.model.generate(**inputs, **settings)
    changed = []
    for head in subject.heads:
        with valve(subject, {head: 0.0}):
            shut = subject.model.generate(**inputs, **settings)
        with zeroed(subject, head):
            assert torch.equal(shut, subject.model.generate(**inputs, **settings)), head
        changed.append(not torch.equal(shut, plain))
    assert any(changed)


@pytest.mark.parametrize("family", ["bloom", "falcon", "gptj", "rembert"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_gradients_equal_plain_ones(family: str, reentrant: bool) -> None:
    subject = Subject(OUTSIDE[family]())
    inputs = tiny_inputs(subject.model, pad=2)
    noise = torch.Generator().manual_seed(2)
    start = torch.rand(len(subject.heads), generator=noise)

    def gradient() -> Tensor:
        scales = start.clone().requires_grad_()
        with valve(subject, scales):
            answer(subject.model(**inputs)).square().mean().backward()
        assert scales.grad is not None
        return scales.grad

    plain = gradient()
    subject.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    for module in subject.model.modules():  # checkpointing asks for training, dropout stays off
        if hasattr(module, "gradient_checkpointing"):
            module.training = True
    torch.testing.assert_close(gradient(), plain)


def test_sdpa_is_kept() -> None:
    subject = Subject(OUTSIDE["falcon"]())
    assert subject.model.config._attn_implementation == "sdpa"
    calls = []
    original = torch.nn.functional.scaled_dot_product_attention

    def counted(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(1)
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, valve(subject, {"dec.0.0": 0.5}):
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", counted)
        subject.model(**tiny_inputs(subject.model))
    assert len(calls) == 2


def test_both_streams_of_xlnet_are_scaled() -> None:
    subject = Subject(OUTSIDE["xlnet"](model_class="XLNetLMHeadModel"))
    inputs = tiny_inputs(subject.model)
    ids = inputs["input_ids"]
    length = ids.shape[1]
    inputs["perm_mask"] = torch.zeros(2, length, length)
    inputs["perm_mask"][:, :, -1] = 1
    inputs["target_mapping"] = torch.zeros(2, 1, length)
    inputs["target_mapping"][:, 0, -1] = 1
    for head in subject.heads:
        with valve(subject, {head: 0.0}):
            shut = run(subject, inputs)
        with zeroed(subject, head):
            close(subject, shut, run(subject, inputs))


def test_adapters_are_scaled_with_the_layer_they_sit_on() -> None:
    peft = pytest.importorskip("peft")
    model = OUTSIDE["gptj"]()
    model = peft.get_peft_model(model, peft.LoraConfig(target_modules=["out_proj", "q_proj"]))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.2, generator=torch.Generator().manual_seed(3))
    subject = Subject(model.eval())
    inputs = tiny_inputs(model.get_base_model())
    plain = run(subject, inputs)
    with valve(subject, torch.ones(8)):
        assert torch.equal(run(subject, inputs), plain)
    taken: list[Tensor] = []
    projection = model.get_submodule("base_model.model.transformer.h.1.attn.out_proj")
    with valve(subject, {"dec.1.2": 0.0}):
        handle = projection.register_forward_hook(lambda _, args, __: taken.append(args[0]))
        run(subject, inputs)
        handle.remove()
    heads = taken[0].unflatten(-1, (4, 8))
    assert not heads[:, :, 2].any()
    assert heads[:, :, [0, 1, 3]].abs().sum(-1).all()
