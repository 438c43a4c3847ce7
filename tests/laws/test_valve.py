"""Laws of the valve, on every family inside the attention interface."""

from __future__ import annotations

import pytest
import torch
from surgery import answer, zeroed
from tiny import INTERFACE, tiny_inputs

from headcount.errors import UnknownHead, UsageError
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.wiring import valve

FAMILIES = sorted(INTERFACE)
CAUSAL = ["gpt2", "gpt_neox", "opt", "llama", "gemma3", "gpt_oss"]
TRANSLATORS = ["t5", "bart", "marian", "m2m100"]


@pytest.fixture(scope="module", params=FAMILIES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(INTERFACE[request.param]())


def run(subject: Subject, **inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return answer(subject.model(**inputs))


def test_scale_one_is_the_identity(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, pad=2)
    plain = run(subject, **inputs)
    with valve(subject, torch.ones(len(subject.heads))):
        assert torch.equal(run(subject, **inputs), plain)


def test_scale_zero_equals_zeroed_weights(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, pad=2)
    plain = run(subject, **inputs)
    shared = subject.model.config.model_type == "albert"
    for head in subject.heads[:: 1 if not shared else len(subject.heads)]:
        with valve(subject, {head: 0.0}):
            shut = run(subject, **inputs)
        assert not torch.equal(shut, plain), head
        if not shared:  # ALBERT's weights serve all layers: see the test below
            with zeroed(subject, head):
                torch.testing.assert_close(shut, run(subject, **inputs), atol=2e-5, rtol=1e-4)


def test_albert_head_shut_in_all_layers_equals_zeroed_weights() -> None:
    subject = Subject(INTERFACE["albert"]())
    inputs = tiny_inputs(subject.model, pad=2)
    for index in range(4):
        everywhere = {Head("enc", layer, index): 0.0 for layer in range(3)}
        with valve(subject, everywhere):
            shut = run(subject, **inputs)
        with zeroed(subject, Head("enc", 0, index)):
            torch.testing.assert_close(shut, run(subject, **inputs), atol=1e-5, rtol=1e-5)


def test_scales_of_one_example_equal_a_run_of_its_own(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    noise = torch.Generator().manual_seed(1)
    scales = torch.rand(3, len(subject.heads), generator=noise)
    with valve(subject, scales):
        together = run(subject, **inputs)
    for example in range(3):
        alone = {name: value[example : example + 1] for name, value in inputs.items()}
        with valve(subject, scales[example]):
            torch.testing.assert_close(
                run(subject, **alone)[0], together[example], atol=2e-5, rtol=1e-4
            )


def test_nested_valves_multiply(subject: Subject) -> None:
    inputs = tiny_inputs(subject.model)
    head = subject.heads[-1]
    with valve(subject, {head: 0.5}), valve(subject, {head: 0.5}):
        twice = run(subject, **inputs)
    with valve(subject, {head: 0.25}):
        torch.testing.assert_close(twice, run(subject, **inputs), atol=1e-6, rtol=1e-5)


def test_gradient_of_a_scale_equals_finite_differences() -> None:
    subject = Subject(INTERFACE["marian"]().double())
    inputs = tiny_inputs(subject.model, pad=2)
    ones = torch.ones(len(subject.heads), dtype=torch.float64)
    scales = ones.clone().requires_grad_()
    with valve(subject, scales):
        answer(subject.model(**inputs)).logsumexp(-1).sum().backward()
    assert scales.grad is not None
    for place in range(0, len(ones), 5):
        losses = []
        for step in (1e-5, -1e-5):
            moved = ones.clone()
            moved[place] += step
            with valve(subject, moved):
                losses.append(run(subject, **inputs).logsumexp(-1).sum().item())
        slope = (losses[0] - losses[1]) / 2e-5
        assert scales.grad[place].item() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("family", CAUSAL + TRANSLATORS)
def test_generate_with_a_cache_equals_zeroed_weights(family: str) -> None:
    # T5's cache is made for as many decoder layers as the encoder has
    even = {"num_decoder_layers": 2} if family == "t5" else {}
    subject = Subject(INTERFACE[family](**even))
    inputs = tiny_inputs(subject.model)
    inputs.pop("decoder_input_ids", None)
    settings = {"max_new_tokens": 6, "do_sample": False, "use_cache": True, "num_beams": 2}
    for head in (subject.heads[1], subject.heads[-1]):
        with valve(subject, {head: 0.0}):
            shut = subject.model.generate(**inputs, **settings)
        with zeroed(subject, head):
            assert torch.equal(shut, subject.model.generate(**inputs, **settings))


def test_generate_gives_all_beams_of_a_sentence_its_scales() -> None:
    subject = Subject(INTERFACE["marian"]())
    inputs = tiny_inputs(subject.model)
    inputs.pop("decoder_input_ids")
    settings = {"max_new_tokens": 6, "do_sample": False, "num_beams": 3}
    scales = torch.ones(2, len(subject.heads))
    scales[0, ::2] = 0.0
    with valve(subject, scales):
        together = subject.model.generate(**inputs, **settings)
    for example in range(2):
        alone = {name: value[example : example + 1] for name, value in inputs.items()}
        with valve(subject, scales[example]):
            single = subject.model.generate(**alone, **settings)[0]
        assert torch.equal(together[example, : len(single)], single)


def test_training_mode_and_dropout_are_left_to_the_model() -> None:
    subject = Subject(INTERFACE["bert"]().train())
    inputs = tiny_inputs(subject.model)
    outputs = []
    for scales in ({}, torch.ones(len(subject.heads))):
        torch.manual_seed(3)
        with valve(subject, scales):
            assert subject.model.training
            outputs.append(run(subject, **inputs))
    assert torch.equal(*outputs)
    torch.manual_seed(3)
    assert torch.equal(run(subject, **inputs), outputs[0])


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"enc.9.9": 0.0}, "There is no head enc.9.9; this model has enc.0.0 to enc.1.3."),
        ({"enc-0-1": 0.0}, "'enc-0-1' is not a head's name"),
        (torch.ones(3), r"has shape \[8\] or \[batch, 8\] for this model's 8 heads, not \(3,\)"),
        ([0.0], "not a list"),
        ({"enc.0.0": torch.ones(2, 2)}, r"The scale of enc.0.0 has shape \(2, 2\)"),
    ],
)
def test_wrong_scales_are_refused(scales: object, message: str) -> None:
    subject = Subject(INTERFACE["bert"]())
    with pytest.raises(UsageError, match=message), valve(subject, scales):  # type: ignore[arg-type]
        pass


def test_unknown_head_is_a_usage_error() -> None:
    assert issubclass(UnknownHead, UsageError)
    assert UnknownHead.exit_code == 2


def test_scales_for_another_batch_size_are_refused() -> None:
    subject = Subject(INTERFACE["bert"]())
    inputs = tiny_inputs(subject.model, batch=2)
    with (
        pytest.raises(
            UsageError, match="scales for 3 examples, but the model was called on 2 rows"
        ),
        valve(subject, torch.ones(3, 8)),
    ):
        subject.model(**inputs)
