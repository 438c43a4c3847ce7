"""The law of removal, on every family: a model without some heads is the model with them shut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from model_state import assert_same, state_of
from surgery import answer
from tiny import (
    GPT,
    GROUPED,
    HIDDEN,
    INTERFACE,
    OUTSIDE,
    SIZES,
    SPECIALS,
    VOCAB,
    row,
    tiny_inputs,
)

from headcount.errors import UnsupportedModel, UsageError
from headcount.models.loading import load
from headcount.models.projections import FOREIGN
from headcount.models.saving.routes import routes_for
from headcount.models.saving.save import written
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.records.heads import Head
from headcount.rooms.exports.exports import filled_with_zeros
from headcount.rooms.transformers4.masks import prune_heads
from headcount.wiring import tap, valve

T5_LIKE = SPECIALS | {"vocab_size": VOCAB, "d_model": HIDDEN, "d_kv": 8, "d_ff": 64}
MORE = {
    "phi3": row("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "phi": row("PhiForCausalLM", "PhiConfig", GROUPED),
    "olmo2": row("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "ctrl": row("CTRLLMHeadModel", "CTRLConfig", GPT, dff=64, n_positions=64),
    "falcon_groups": row(
        *("FalconForCausalLM", "FalconConfig", SPECIALS | SIZES | {"vocab_size": VOCAB}),
        **{"new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "umt5": row(
        *("UMT5ForConditionalGeneration", "UMT5Config", T5_LIKE),
        **{"num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
    ),
}
ALL = {**INTERFACE, **OUTSIDE, **MORE}
REFUSED = sorted(name for name in ALL if name.replace("_v2", "-v2") in FOREIGN)
FAMILIES = sorted(ALL.keys() - set(REFUSED))
ROOM = {"atol": 1e-5, "rtol": 1e-5}

Choose = Callable[[Subject], list[Head]]


def some(subject: Subject) -> list[Head]:
    """Different heads in every layer, as far as the family lets them go."""
    going: list[Head] = []
    for turn, site in enumerate(subject.anatomy.sites):
        if subject.model.config.model_type == "albert":
            going.append(site.names[1])
        elif site.kv_heads < site.heads:  # a whole group in one layer, a query of each in another
            going += site.names[:2] if turn % 2 else [site.names[1], site.names[2]]
        else:
            going += [site.names[turn % 4], site.names[(turn + 1) % 4]][: 1 + turn % 2]
    return going


def first_layers(subject: Subject) -> list[Head]:
    """All heads of the first layer of every stack, where a cache counts its tokens."""
    if subject.model.config.model_type == "albert":
        return [Head("enc", layer, index) for layer in range(3) for index in range(3)]
    return [head for head in subject.heads if head.layer == 0]


def run(subject: Subject, **inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return answer(subject.model(**inputs))


@pytest.mark.parametrize("choose", [some, first_layers], ids=["some", "first layers"])
@pytest.mark.parametrize("family", FAMILIES)
def test_removed_equals_shut(family: str, choose: Choose) -> None:
    subject = Subject(ALL[family]())
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    plain, going = run(subject, **inputs), choose(subject)
    small = prune(subject, going)
    with valve(subject, dict.fromkeys(going, 0.0)):
        shut = run(subject, **inputs)
    assert not torch.allclose(shut, plain, **ROOM)
    torch.testing.assert_close(run(small, **inputs), shut, **ROOM)
    assert torch.equal(run(subject, **inputs), plain)
    assert small.heads == [head for head in subject.heads if head not in set(going)]


@pytest.mark.parametrize("family", FAMILIES)
def test_inside_a_valve_nothing_is_removed(family: str) -> None:
    """The copy would keep the valve's hooks, or the name of its attention, for good."""
    subject = Subject(ALL[family]())
    inputs, going = tiny_inputs(subject.model), some(subject)
    first = going[0]
    plain, before = run(subject, **inputs), state_of(subject)
    for opened in (valve(subject, {subject.heads[-1]: 0.5}), tap(subject)):
        with opened:
            with pytest.raises(UsageError, match="A valve, tap or ablation is open on"):
                prune(subject, going)
            with pytest.raises(UsageError, match="and it would be pruned with it; do that after"):
                prune_heads(subject.model, {first.stack: {first.layer: [first.index]}})
    assert_same(before, state_of(subject))
    with valve(subject, torch.ones(len(subject.heads))):
        assert torch.equal(run(subject, **inputs), plain)


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_cannot_be_cut_is_refused_with_its_reason(family: str) -> None:
    subject = Subject(ALL[family]())
    reason = FOREIGN[subject.model.config.model_type]
    with pytest.raises(UnsupportedModel) as refused:
        prune(subject, [subject.heads[0]])
    assert reason in str(refused.value)
    assert "hc.valve" in str(refused.value)


CAUSAL = ["gpt2", "gpt_neox", "opt", "llama", "mistral", "qwen3", "gemma3", "gpt_oss", "phi3"]
CAUSAL += ["bloom", "falcon", "falcon_groups", "mpt", "phi", "olmo2"]
TRANSLATORS = ["t5", "umt5", "bart", "mbart", "marian", "m2m100", "whisper"]


@pytest.mark.parametrize("choose", [some, first_layers], ids=["some", "first layers"])
@pytest.mark.parametrize("family", CAUSAL + TRANSLATORS)
def test_generate_with_a_cache(family: str, choose: Choose) -> None:
    # T5's cache is made for as many decoder layers as the encoder has
    even = {"num_decoder_layers": 2} if family in ("t5", "umt5") else {}
    subject = Subject(ALL[family](**even))
    inputs = tiny_inputs(subject.model)
    inputs.pop("decoder_input_ids", None)
    settings = {"max_new_tokens": 6, "do_sample": False, "use_cache": True, "num_beams": 2}
    going = choose(subject)
    with valve(subject, dict.fromkeys(going, 0.0)):
        shut = subject.model.generate(**inputs, **settings)
    small = prune(subject, going)
    assert torch.equal(small.model.generate(**inputs, **settings), shut)
    without = small.model.generate(**inputs, **settings | {"use_cache": False})
    assert torch.equal(without, shut)


@pytest.mark.parametrize(
    "family", ["bert", "gpt2", "llama", "marian", "t5", "phi3", "gptj", "bloom", "mpnet", "olmo2"]
)
def test_removed_in_two_steps_equals_removed_in_one(family: str) -> None:
    subject = Subject(ALL[family]())
    inputs = tiny_inputs(subject.model, pad=2)
    going = some(subject)
    first = [head for head in going if head.layer == 0]
    twice = prune(prune(subject, first), [head for head in going if head.layer > 0])
    once = prune(subject, going)
    assert twice.heads == once.heads
    assert twice.model.config.headcount == once.model.config.headcount
    torch.testing.assert_close(run(twice, **inputs), run(once, **inputs), **ROOM)


def one_of_each(subject: Subject) -> list[Head]:
    """As many heads from every layer, not the same: of every group one, where keys are shared."""
    albert = subject.model.config.model_type == "albert"
    return [
        site.names[group * (site.heads // site.kv_heads) + (0 if albert else site.layer % 2)]
        for site in subject.anatomy.sites
        for group in range(site.kv_heads if site.kv_heads < site.heads else 1)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_in_between_it_is_the_same(family: str, tmp_path: Path) -> None:
    whole = Subject(ALL[family]())
    inputs, first = tiny_inputs(whole.model, pad=2), one_of_each(whole)
    small = prune(whole, first)
    layers = {site.layer for site in whole.anatomy.sites} if family == "albert" else {0}
    second = [site.names[-1] for site in small.anatomy.sites if site.layer in layers]
    once = prune(whole, [*first, *second])
    said = run(once, **inputs)
    for route in routes_for(small.inner):
        written(small, tmp_path / route.name, route)
        loaded = load(tmp_path / route.name, device="cpu")
        assert loaded.heads == small.heads, route.name
        twice = prune(loaded, second)
        assert twice.heads == once.heads, route.name
        torch.testing.assert_close(run(twice, **inputs), said, **ROOM)
        filled = Subject(filled_with_zeros(twice.model))
        assert filled.model.num_parameters() == whole.model.num_parameters()
        written(filled, tmp_path / "zeros", next(routes_for(filled.model)))
        plain = load(tmp_path / "zeros", device="cpu")
        shutil.rmtree(tmp_path / "zeros")
        assert plain.heads == whole.heads
        torch.testing.assert_close(run(plain, **inputs), said, **ROOM)
    for route in routes_for(twice.inner):
        written(twice, tmp_path / "again", route)
        torch.testing.assert_close(run(load(tmp_path / "again"), **inputs), said, **ROOM)


@pytest.mark.parametrize("family", ["bert", "marian", "t5", "llama", "phi3", "modernbert"])
def test_a_valve_on_a_small_model_goes_by_the_old_names(family: str) -> None:
    subject = Subject(ALL[family]())
    inputs = tiny_inputs(subject.model, pad=2)
    going = some(subject)
    small = prune(subject, going)
    head = small.heads[-1]
    with valve(subject, dict.fromkeys([*going, head], 0.0)):
        shut = run(subject, **inputs)
    with valve(small, {head: 0.0}):
        torch.testing.assert_close(run(small, **inputs), shut, **ROOM)


def test_a_dead_head_stays_dead_in_training() -> None:
    small = prune(subject := Subject(ALL["bert"]()), first_layers(subject))
    model = small.model.train()
    before = [p.detach().clone() for p in model.encoder.layer[0].attention.self.parameters()]
    steps = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        model(**tiny_inputs(model)).last_hidden_state.square().mean().backward()
        steps.step()
    after = model.encoder.layer[0].attention.self.parameters()
    assert all(torch.equal(a, b) and not a.any() for a, b in zip(after, before, strict=True))
