"""Anatomy: every family's sites as its config says, found by listening; refusals by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from subjects import subject_of
from tiny import DECODERS, ENCODERS, GROUPED, INTERFACE, OUTSIDE, PAIRS, TINY, tiny_inputs

from headcount.errors import ModelError, UnsupportedModel
from headcount.models.anatomy import Anatomy, Site, anatomy_of
from headcount.models.subject import Subject
from headcount.models.switch import attention_configs
from headcount.records.heads import Head
from headcount.rooms.outside import outside


def layers_of(anatomy: Anatomy) -> dict[str, list[int]]:
    return {
        stack: [site.layer for site in anatomy.sites if site.stack == stack]
        for stack in anatomy.stacks
    }


def shapes_of(anatomy: Anatomy) -> set[tuple[int, int, int]]:
    return {(site.heads, site.kv_heads, site.head_dim) for site in anatomy.sites}


@pytest.mark.parametrize("family", ENCODERS)
def test_encoders(family: str) -> None:
    model = ENCODERS[family]()
    anatomy = anatomy_of(model)
    layers = 3 if family == "albert" else 2
    assert layers_of(anatomy) == {"enc": [*range(layers)]}
    assert shapes_of(anatomy) == {(4, 4, 8)}
    assert not any(site.causal for site in anatomy.sites)


@pytest.mark.parametrize("family", DECODERS)
def test_decoders(family: str) -> None:
    anatomy = anatomy_of(DECODERS[family]())
    grouped = family in ("llama", "mistral", "qwen3", "gemma2", "gemma3", "gpt_oss")
    assert layers_of(anatomy) == {"dec": [0, 1]}
    assert shapes_of(anatomy) == {(4, 2 if grouped else 4, 8)}
    assert all(site.causal for site in anatomy.sites)


@pytest.mark.parametrize("family", PAIRS)
def test_encoder_decoders(family: str) -> None:
    anatomy = anatomy_of(PAIRS[family]())
    assert layers_of(anatomy) == {"enc": [0, 1], "dec": [0, 1, 2], "cross": [0, 1, 2]}
    assert shapes_of(anatomy) == {(4, 4, 8)}
    assert {site.stack for site in anatomy.sites if site.causal} == {"dec"}


@pytest.mark.parametrize("family", OUTSIDE)
def test_families_outside_the_interface(family: str) -> None:
    anatomy = anatomy_of(OUTSIDE[family]())
    expected = {"enc": [0, 1], "dec": [0, 1, 2], "cross": [0, 1, 2]}
    if family not in ("fsmt", "mvp"):
        expected = {anatomy.stacks[0]: [0, 1]}
    assert layers_of(anatomy) == expected
    assert {(site.heads, site.head_dim) for site in anatomy.sites} == {(4, 8)}


@pytest.mark.parametrize("family", INTERFACE)
def test_every_site_names_a_module_of_the_model(family: str) -> None:
    model = INTERFACE[family]()
    anatomy = anatomy_of(model)
    for site in anatomy.sites:
        assert "ttention" in type(model.get_submodule(site.module)).__name__
        assert site.route == "interface"
    keys = [(site.module, site.call) for site in anatomy.sites]
    assert len(set(keys)) == len(keys)
    assert len({*anatomy.heads}) == len(anatomy.heads) == 4 * len(anatomy.sites)


def test_stacks_are_those_of_the_modules_names() -> None:
    for family in ("t5", "bart", "mbart", "marian", "m2m100", "whisper"):
        for site in anatomy_of(PAIRS[family]()).sites:
            assert ("encoder." in site.module.replace("decoder.", "")) == (site.stack == "enc")
            across = "encoder_attn" in site.module or "EncDecAttention" in site.module
            assert across == (site.stack == "cross")


def test_t5_counts_its_layers_although_layer_idx_repeats() -> None:
    model = TINY["t5"]()
    sites = anatomy_of(model).sites
    places = [getattr(model.get_submodule(site.module), "layer_idx", None) for site in sites]
    assert len(set(places)) < len(places)  # the trap
    assert [(site.stack, site.layer) for site in sites] == [
        *(("enc", layer) for layer in range(2)),
        *(("dec", layer) for layer in range(3)),
        *(("cross", layer) for layer in range(3)),
    ]
    assert sites[3].module == "decoder.block.1.layer.0.SelfAttention"
    assert sites[6].module == "decoder.block.1.layer.1.EncDecAttention"


def test_albert_is_one_module_called_thrice() -> None:
    sites = anatomy_of(TINY["albert"]()).sites
    assert len({site.module for site in sites}) == 1
    assert [(site.layer, site.call) for site in sites] == [(0, 0), (1, 1), (2, 2)]


def test_albert_with_two_groups_calls_each_in_turn() -> None:
    sites = anatomy_of(TINY["albert"](num_hidden_layers=4, num_hidden_groups=2)).sites
    assert [(site.layer, site.call) for site in sites] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert len({site.module for site in sites}) == 2


@pytest.mark.parametrize(
    ("family", "settings", "shape"),
    [
        ("bert", {"hidden_size": 48, "num_attention_heads": 6, "num_hidden_layers": 5}, (6, 6, 8)),
        ("llama", {"num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 16}, (8, 1, 16)),
        ("qwen3", {"num_key_value_heads": 4, "head_dim": 4}, (4, 4, 4)),
        ("gpt2", {"n_head": 2, "n_layer": 5}, (2, 2, 16)),
    ],
)
def test_shapes_are_as_configured(family: str, settings: dict[str, int], shape: Any) -> None:
    model = TINY[family](**settings)
    anatomy = anatomy_of(model)
    assert shapes_of(anatomy) == {shape}
    assert len(anatomy.sites) == model.config.num_hidden_layers


@pytest.mark.parametrize(
    "model_class",
    ["BertForSequenceClassification", "BertForMaskedLM", "BertForTokenClassification"],
)
def test_a_head_on_top_changes_the_modules_name_alone(model_class: str) -> None:
    bare, topped = anatomy_of(TINY["bert"]()), anatomy_of(TINY["bert"](model_class=model_class))
    assert topped.heads == bare.heads
    assert [s.module for s in topped.sites] == [f"bert.{s.module}" for s in bare.sites]


def test_a_bert_that_decodes_is_a_decoder() -> None:
    model = TINY["bert"](model_class="BertLMHeadModel", is_decoder=True)
    assert layers_of(anatomy_of(model)) == {"dec": [0, 1]}


def test_a_lora_wrapper_changes_no_heads_name() -> None:
    from peft import LoraConfig, get_peft_model

    bare = anatomy_of(TINY["llama"]())
    wrapped = get_peft_model(TINY["llama"](), LoraConfig(target_modules=["q_proj"], r=2))
    found = anatomy_of(wrapped)
    assert found.heads == bare.heads
    assert [s.module for s in found.sites] == [f"base_model.model.{s.module}" for s in bare.sites]
    assert wrapped.get_submodule(found.sites[0].module)


def test_one_tower_of_clip_is_an_encoder_of_its_own() -> None:
    clip = TINY["clip"]()
    assert anatomy_of(clip.vision_model).stacks == ("enc",)
    assert anatomy_of(clip.text_model).heads  # its text is causal


def test_spans_and_sites_find_each_other() -> None:
    anatomy = anatomy_of(TINY["marian"]())
    for site in anatomy.sites:
        assert anatomy.heads[anatomy.spans[site]] == [
            Head(site.stack, site.layer, index) for index in range(site.heads)
        ]
        assert anatomy.site(site.stack, site.layer) == site
    with pytest.raises(UnsupportedModel, match=r"There is no attention at enc\.9 in this model"):
        anatomy.site("enc", 9)


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "whisper", "vit", "deberta"])
def test_listening_changes_nothing(family: str) -> None:
    model = TINY[family]().train()
    state = torch.random.get_rng_state()
    before = [config.to_json_string() for config in attention_configs(model)]
    names = [config._attn_implementation for config in attention_configs(model)]
    assert anatomy_of(model).sites
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(module.training for module in model.modules())
    assert [config.to_json_string() for config in attention_configs(model)] == before
    assert [config._attn_implementation for config in attention_configs(model)] == names
    assert model(**tiny_inputs(model))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["bert", "llama", "marian", "whisper", "vit"])
def test_half_precision_has_the_same_heads(family: str, dtype: torch.dtype) -> None:
    assert anatomy_of(TINY[family]().to(dtype)).sites == anatomy_of(TINY[family]()).sites


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (
            "clip",
            "CLIPModel has two towers whose heads would share their names; pass one of them: "
            "Subject(model.text_model, tokenizer) or Subject(model.vision_model).",
        ),
        (
            "mamba",
            "MambaModel (model type 'mamba') has no attention heads; headcount works on "
            "Transformers with softmax attention.",
        ),
    ],
)
def test_what_has_no_heads_to_name_is_refused(family: str, message: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        anatomy_of(TINY[family]())
    assert str(caught.value) == message


@pytest.mark.parametrize("family", ["LongT5", "BigBirdPegasus"])
def test_an_encoder_decoder_with_an_encoder_outside_the_interface_is_refused(family: str) -> None:
    like = TINY["t5" if family == "LongT5" else "bart"]().config.to_diff_dict()
    config = getattr(transformers, f"{family}Config").from_dict(like)
    model = getattr(transformers, f"{family}Model")(config)
    with pytest.raises(UnsupportedModel, match=rf"The enc attention of {family}Model .* does not"):
        anatomy_of(model)


def test_keys_that_are_not_tokens_make_no_cross_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summaries of tokens among the keys are no source that a decoder looks at."""
    monkeypatch.delitem(outside.REFUSED, "deepseek_v4")
    config = transformers.DeepseekV4Config(
        **GROUPED | {"num_key_value_heads": 1, "num_hidden_layers": 1, "q_lora_rank": 16},
        **{"layer_types": ["compressed_sparse_attention"], "qk_rope_head_dim": 8, "o_groups": 2},
        **{"o_lora_rank": 16, "index_n_heads": 2, "index_head_dim": 16, "index_topk": 3},
        **{"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    )
    with pytest.raises(UnsupportedModel, match=r"DeepseekV4Model .* attends to keys that are not"):
        anatomy_of(transformers.DeepseekV4Model(config))


def test_a_model_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TINY["bert"]()

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no way\nwith two lines")

    monkeypatch.setattr(model.encoder, "forward", fail)
    with pytest.raises(UnsupportedModel, match=r"BertModel could not be .*ValueError: no way\);"):
        anatomy_of(model)


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "deberta", "gptj", "xlnet"])
def test_broken_weights_are_named_before_anything_else(family: str) -> None:
    model = TINY[family]()
    names = [n for n, w in model.named_parameters() if ".0." in n and w.dim() >= 2]
    with torch.no_grad():
        model.get_parameter(names[0]).fill_(float("nan"))
    with pytest.raises(ModelError) as caught:
        _ = Subject(model, name="mine").anatomy
    assert f"The weight {names[0]} of mine holds " in str(caught.value)


def test_attention_that_overflows_is_no_encoder() -> None:
    model = TINY["llama"]()
    with torch.no_grad():
        model.model.layers[0].mlp.down_proj.weight.fill_(6e4)
    model.half()
    with pytest.raises(UnsupportedModel, match=r"The attention of LlamaAttention is not a number"):
        anatomy_of(model)


# --- real models ----------------------------------------------------------------------------------


@pytest.mark.real
def test_minilm(minilm: Subject) -> None:
    anatomy = anatomy_of(minilm.model)
    assert layers_of(anatomy) == {"enc": [*range(6)]}
    assert shapes_of(anatomy) == {(12, 12, 32)}
    assert len(anatomy.heads) == 72


@pytest.mark.real
def test_smollm2(smollm2: Subject) -> None:
    anatomy = anatomy_of(smollm2.model)
    assert layers_of(anatomy) == {"dec": [*range(30)]}
    assert shapes_of(anatomy) == {(9, 3, 64)}
    assert len(anatomy.heads) == 270


def test_the_bundled_translator() -> None:
    from headcount.models.loading import load

    anatomy = load("translator", device="cpu").anatomy
    assert {stack: len(layers) for stack, layers in layers_of(anatomy).items()} == {
        "enc": 6,
        "dec": 6,
        "cross": 6,
    }
    assert {site.heads for site in anatomy.sites} == {8}


def test_subjects_keep_their_anatomy() -> None:
    subject = subject_of("bert", "wordpiece")
    assert subject.anatomy is subject.anatomy
    assert isinstance(subject.anatomy.sites[0], Site)


def test_a_hybrid_model_keeps_the_numbers_of_its_layers() -> None:
    """Jamba attends in some of its layers only; a head is named by its layer, not by its turn."""
    config = transformers.JambaConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_layer_offset=1,
        attn_layer_period=2,
        num_experts=1,
        num_experts_per_tok=1,
        mamba_d_state=4,
        use_mamba_kernels=False,
    )
    anatomy = anatomy_of(transformers.JambaModel(config))
    assert layers_of(anatomy) == {"dec": [1, 3]}
    assert [site.module for site in anatomy.sites] == ["layers.1.self_attn", "layers.3.self_attn"]
