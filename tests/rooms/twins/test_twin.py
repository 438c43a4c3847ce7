"""Random twins: drawn anew, alike in everything else, and leaving the subject alone."""

from __future__ import annotations

import pytest
import torch
from subjects import subject_of
from tiny import INTERFACE, TINY, tiny_inputs
from tiny_subjects import encoder

from headcount.errors import ModelError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.rooms.twins.twin import random_twin

FAMILIES = ["bert", "gpt2", "llama", "marian", "bart", "t5", "albert", "gpt_oss"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_twin_has_the_same_heads_and_other_weights(family: str) -> None:
    subject = Subject(TINY[family](), name=family)
    before = subject.weights_hash
    twin = random_twin(subject)
    assert twin.heads == subject.heads
    assert twin.weights_hash != before
    assert Subject(subject.model).weights_hash == before
    assert not twin.model.training
    assert {n: (w.shape, w.dtype) for n, w in twin.model.named_parameters()} == {
        n: (w.shape, w.dtype) for n, w in subject.model.named_parameters()
    }
    twin.model(**tiny_inputs(twin.model))


@pytest.mark.parametrize("family", ["bert", "marian"])
def test_weights_look_as_a_fresh_model_has_them(family: str) -> None:
    subject = Subject(TINY[family]())
    twin = random_twin(subject).model.state_dict()
    torch.manual_seed(5)
    fresh = type(subject.model)(subject.model.config).state_dict()
    for name, weight in fresh.items():
        if weight.is_floating_point() and weight.numel() > 500:
            assert float(twin[name].std()) == pytest.approx(float(weight.std()), rel=0.2), name
        elif weight.ndim == 1 and not weight.is_complex():
            assert torch.equal(twin[name], weight), name  # biases 0, norms 1


def test_a_layer_without_heads_stays_without() -> None:
    small = prune(encoder(), "enc.0,enc.1.2")
    twin = random_twin(small)
    assert twin.heads == small.heads
    first, second = (layer.attention.self.value.weight for layer in twin.model.encoder.layer)
    assert not first.any()
    assert second.any()


def test_a_seed_is_a_twin() -> None:
    subject = encoder()
    one, again, other = (random_twin(subject, seed=seed) for seed in (1, 1, 2))
    assert one.weights_hash == again.weights_hash != other.weights_hash
    assert one.name == "random twin 1 of tiny bert"


def test_nobody_elses_random_numbers_are_touched() -> None:
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    random_twin(encoder())
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "marian"])
def test_embeddings_may_stay(family: str) -> None:
    subject = Subject(TINY[family]())
    twin = random_twin(subject, keep_embeddings=True)
    old, new = subject.inner.get_input_embeddings(), twin.inner.get_input_embeddings()
    assert torch.equal(old.weight, new.weight)
    assert not torch.equal(random_twin(subject).inner.get_input_embeddings().weight, old.weight)
    site = subject.anatomy.sites[0]
    before, after = (one.model.get_submodule(site.module).state_dict() for one in (subject, twin))
    matrices = [name for name, value in before.items() if value.ndim == 2]
    assert matrices
    assert not any(torch.equal(before[name], after[name]) for name in matrices)


@pytest.mark.parametrize("family", ["t5", "marian", "gpt2"])
def test_tied_weights_stay_tied(family: str) -> None:
    subject = Subject(TINY[family]())
    places = {id(w) for w in subject.model.parameters()}
    shared = len(list(subject.model.named_parameters(remove_duplicate=False))) - len(places)
    twin = random_twin(subject).model
    again = len(list(twin.named_parameters(remove_duplicate=False))) - len(
        {id(w) for w in twin.parameters()}
    )
    assert again == shared


def test_the_dtype_is_kept_and_the_draw_does_not_depend_on_it() -> None:
    model = INTERFACE["llama"]()
    exact = random_twin(Subject(model)).model.state_dict()
    half = random_twin(Subject(INTERFACE["llama"]().to(torch.bfloat16))).model.state_dict()
    for name, weight in half.items():
        if weight.is_floating_point():
            assert torch.equal(weight, exact[name].to(weight.dtype)), name


def test_weights_that_cannot_be_drawn_are_told() -> None:
    subject = subject_of("bert", "wordpiece")
    packed = torch.ao.quantization.quantize_dynamic(subject.model, {torch.nn.Linear})
    with pytest.raises(ModelError, match=r"attention.* in packed cannot be drawn anew"):
        random_twin(Subject(packed, name="packed"))
