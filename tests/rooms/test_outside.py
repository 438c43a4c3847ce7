"""Sites of families outside the attention interface, and the refusal of those that have none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from packaging.version import Version
from tiny import ENCODER, OUTSIDE, TINY, VOCAB
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedModel
from headcount.models.anatomy import Site, anatomy_of
from headcount.rooms.outside import outside
from headcount.rooms.outside.outside import REFUSED, Family, entering, family_of, outside_sites

DECODERS = ["bloom", "codegen", "falcon", "gpt_neo", "gpt_neox_japanese", "gptj", "mpt"]
DECODERS += ["openai_gpt", "xglm"]
TRANSLATORS = ["fsmt", "mvp"]
ENCODERS = sorted(OUTSIDE.keys() - {*DECODERS, *TRANSLATORS})


@pytest.mark.parametrize(
    ("family", "stack"), [(f, "enc") for f in ENCODERS] + [(f, "dec") for f in DECODERS]
)
def test_the_sites_of_one_stack(family: str, stack: str) -> None:
    sites = anatomy_of(OUTSIDE[family]()).sites
    assert [(site.stack, site.layer, site.heads, site.head_dim) for site in sites] == [
        (stack, 0, 4, 8),
        (stack, 1, 4, 8),
    ]
    assert {site.causal for site in sites} == {stack == "dec"}
    assert {(site.route, site.call) for site in sites} == {("projection", 0)}


@pytest.mark.parametrize("family", TRANSLATORS)
def test_the_sites_of_a_translator(family: str) -> None:
    anatomy = anatomy_of(OUTSIDE[family]())
    assert anatomy.stacks == ("enc", "dec", "cross")
    assert [site.layer for site in anatomy.sites] == [0, 1, 0, 1, 2, 0, 1, 2]
    causal = {site.stack: site.causal for site in anatomy.sites}
    assert causal == {"enc": False, "dec": True, "cross": False}
    assert anatomy.site("enc", 1).module == "model.encoder.layers.1.self_attn"
    assert anatomy.site("dec", 2).module == "model.decoder.layers.2.self_attn"
    assert anatomy.site("cross", 2).module == "model.decoder.layers.2.encoder_attn"


def test_names_are_those_of_the_model_in_hand_not_of_its_core() -> None:
    model = OUTSIDE["deberta_v2"](model_class="DebertaV2ForSequenceClassification")
    names = [site.module for site in anatomy_of(model).sites]
    assert names == [f"deberta.encoder.layer.{n}.attention" for n in range(2)]


def test_an_adapter_does_not_hide_the_heads() -> None:
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(
        OUTSIDE["gptj"](), peft.LoraConfig(target_modules=["q_proj", "out_proj"])
    )
    assert anatomy_of(wrapped).sites[1].module == "base_model.model.transformer.h.1.attn"


@pytest.mark.parametrize(
    ("settings", "kv_heads"),
    [
        ({}, 1),
        ({"multi_query": False}, 4),
        ({"new_decoder_architecture": True, "num_kv_heads": 2}, 2),
    ],
)
def test_falcon_s_key_heads(settings: dict[str, Any], kv_heads: int) -> None:
    for site in anatomy_of(OUTSIDE["falcon"](**settings)).sites:
        assert (site.heads, site.kv_heads) == (4, kv_heads)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("xlnet", {"attn_type": "uni"}),
        ("xlm", {"causal": True}),
        ("rembert", {"is_decoder": True}),
        ("roformer", {"is_decoder": True}),
        ("megatron_bert", {"is_decoder": True}),
    ],
)
def test_an_encoder_family_made_causal_is_a_decoder(family: str, settings: dict[str, Any]) -> None:
    sites = anatomy_of(OUTSIDE[family](**settings)).sites
    assert {(site.stack, site.causal) for site in sites} == {("dec", True)}


def test_a_module_that_serves_two_layers_is_two_sites() -> None:
    model = OUTSIDE["gptj"]()
    model.transformer.h[1] = model.transformer.h[0]
    sites = anatomy_of(model).sites
    assert [(site.layer, site.call) for site in sites] == [(0, 0), (1, 1)]
    assert {site.module for site in sites} == {"transformer.h.0.attn"}


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit"])
def test_a_family_inside_the_interface_has_no_sites_here(family: str) -> None:
    assert outside_sites(TINY[family]()) == []
    assert family_of(TINY[family]()) is None


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_every_refused_family_is_one_of_transformers(kind: str) -> None:
    if kind.startswith("mistral_large4") and Version(transformers.__version__) < Version("5.22"):
        pytest.skip("this transformers does not know the family yet")
    assert kind in transformers.CONFIG_MAPPING
    assert kind not in outside.OUTSIDE


def built(model_class: str, **settings: Any) -> PreTrainedModel:
    config_class = getattr(transformers, model_class).config_class
    with torch.random.fork_rng(devices=[]):
        return getattr(transformers, model_class)(config_class(**settings)).eval()


@pytest.mark.parametrize(
    ("model_class", "settings", "message"),
    [
        (
            "DeepseekV32Model",
            {**ENCODER, "first_k_dense_replace": 2, "index_topk": 2},
            r"DeepseekV32Model \(model type 'deepseek_v32'\) chooses some keys for each query",
        ),
        (
            "DiffLlamaModel",
            {**ENCODER, "num_key_value_heads": 2},
            r"DiffLlamaModel \(model type 'diffllama'\) attends twice in each layer",
        ),
        (
            "LongformerModel",
            {**ENCODER, "attention_window": [4, 4]},
            r"LongformerModel \(model type 'longformer'\) attends within a band",
        ),
        (
            "FunnelModel",
            {"vocab_size": VOCAB, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_inner": 64},
            r"FunnelModel \(model type 'funnel'\) shortens the sequence",
        ),
        ("SqueezeBertModel", {**ENCODER, "embedding_size": 32}, "scores before the softmax"),
        ("YosoModel", ENCODER, "samples its attention by hashing"),
        ("ConvBertModel", {**ENCODER, "embedding_size": 32}, "puts convolutions beside its heads"),
    ],
)
def test_attention_that_is_no_map_is_refused_by_name(
    model_class: str, settings: dict[str, Any], message: str
) -> None:
    model = built(model_class, **settings)
    with pytest.raises(UnsupportedModel, match=message):
        anatomy_of(model)


def test_a_family_without_a_row_is_refused_with_the_way_to_add_one() -> None:
    model = built("VisualBertModel", **ENCODER, visual_embedding_dim=32)
    with pytest.raises(UnsupportedModel) as refusal:
        anatomy_of(model)
    said = str(refusal.value)
    assert said.startswith(
        "VisualBertModel (model type 'visual_bert') does not speak transformers'"
    )
    assert "bloom, codegen, deberta, deberta-v2, falcon" in said
    assert said.endswith("docs/how-to/add-a-family.md says how to add one.")


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("bloom", {"slow_but_exact": True, "pretraining_tp": 2}, "only with slow_but_exact=False"),
        ("deberta", {"talking_head": True}, "has talking_head=True, and the heads of 'deberta'"),
        ("falcon", {"alibi": True}, "FalconModel has alibi=True"),
        ("ibert", {"quant_mode": True}, "only with quant_mode=False"),
        ("big_bird", {"attention_type": "block_sparse"}, "attention_type='original_full'"),
        ("mvp", {"use_prompt": True, "prompt_length": 3}, "only with use_prompt=False"),
    ],
)
def test_a_setting_that_spoils_the_heads_is_refused(
    family: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        anatomy_of(OUTSIDE[family](**settings))


def test_a_refused_big_bird_keeps_its_sparse_attention() -> None:
    model = OUTSIDE["big_bird"](attention_type="block_sparse")
    with pytest.raises(UnsupportedModel):
        anatomy_of(model)
    assert model.attention_type == "block_sparse"


def test_a_model_that_holds_a_part_outside_is_refused_whole() -> None:
    both = transformers.EncoderDecoderModel(
        encoder=OUTSIDE["mpnet"](),
        decoder=TINY["bert"](
            model_class="BertLMHeadModel", is_decoder=True, add_cross_attention=True
        ),
    )
    with pytest.raises(UnsupportedModel, match=r"EncoderDecoderModel holds a MPNetModel \(model"):
        anatomy_of(both)


# --- a wrong row never gives wrong sites --------------------------------------------------------


def with_row(patch: pytest.MonkeyPatch, kind: str, row: Family) -> None:
    patch.setitem(outside.OUTSIDE, kind, row)
    patch.delitem(outside.REFUSED, kind, raising=False)


@pytest.mark.parametrize(
    ("family", "settings", "row", "message"),
    [
        ("gptj", {}, Family("NoSuchAttention", "out_proj"), "without once calling the out_proj"),
        ("gptj", {}, Family("GPTJAttention", "no_such"), "could not be run on a small input"),
        ("fsmt", {}, Family("Attention", "out_proj"), r"heads of shape \[5, 1, 32\]"),
        ("gptj", {}, Family("GPTJAttention", "out_proj", time_first=True), "heads of shape"),
        # the projection's weight is used past the module
        (
            "bloom",
            {"slow_but_exact": True, "pretraining_tp": 2},
            Family("BloomAttention", "dense"),
            "without once calling the dense of a BloomAttention",
        ),
        # rows that are a mixture of all heads' rows
        (
            "deberta",
            {"talking_head": True},
            Family("DebertaAttention", "output.dense"),
            "rows sum",
        ),
        # the eager path adds the bias twice
        (
            "falcon",
            {"alibi": True},
            Family("FalconAttention", "dense"),
            "FalconModel gives other outputs when it is asked for its attention maps",
        ),
    ],
)
def test_a_wrong_row_ends_in_a_refusal(
    family: str,
    settings: dict[str, Any],
    row: Family,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = OUTSIDE[family](**settings)
    with_row(monkeypatch, model.config.model_type, row)
    with pytest.raises(UnsupportedModel, match=message):
        anatomy_of(model)


def test_scores_in_place_of_maps_end_in_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    model = built("SqueezeBertModel", **ENCODER, embedding_size=32)
    with_row(monkeypatch, "squeezebert", Family("SqueezeBertModule", "post_attention.conv1d"))
    with pytest.raises(UnsupportedModel, match="and rows sum to 1"):
        anatomy_of(model)


def test_a_new_row_is_all_that_a_family_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = built("VisualBertModel", **ENCODER, visual_embedding_dim=32)
    with_row(monkeypatch, "visual_bert", Family("VisualBertAttention", "output.dense"))
    assert anatomy_of(model).sites[0] == Site(
        "enc", 0, 4, 4, 8, "encoder.layer.0.attention", route="projection"
    )


# --- What enters an output projection can be seen and replaced, and nothing stays beh -----------


class Linear(nn.Module):
    """Projects in a module, which also takes something else."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.ModuleDict({"dense": nn.Bilinear(6, 1, 2, bias=False)})

    def forward(self, heads: Tensor, other: Tensor) -> Tensor:
        return self.output["dense"](heads, other)


class Method(nn.Module):
    """Projects in a method, as XLNet does: `[query, batch, head, dim]`."""

    def project(self, residual: Tensor, heads: Tensor, residual_too: bool = True) -> Tensor:
        out = heads.sum((-2, -1))
        return out + residual if residual_too else out

    def forward(self, heads: Tensor) -> Tensor:
        return self.project(torch.ones(heads.shape[:2]), heads, residual_too=True)


def test_a_module_s_first_input_is_seen_and_replaced() -> None:
    layer, heads, other = Linear(), torch.randn(2, 3, 6), torch.randn(2, 3, 1)
    seen: list[Any] = []

    def show(attention: nn.Module, shown: Tensor) -> Tensor:
        seen.append((attention, shown))
        return shown * 2

    with entering([layer], Family("Linear", "output.dense"), show):
        doubled = layer(heads, other)
    assert seen[0][0] is layer
    assert seen[0][1] is heads
    assert torch.equal(doubled, layer(2 * heads, other))


def test_turned_axes_are_turned_to_batch_first_and_back() -> None:
    layer, heads, other = Linear(), torch.randn(3, 2, 6), torch.randn(3, 2, 1)
    scale = torch.tensor([0.0, 1.0])[:, None, None]  # the first of two examples is shut

    def show(_: nn.Module, shown: Tensor) -> Tensor:
        assert shown.shape == (2, 3, 6)
        return shown * scale

    with entering([layer], Family("Linear", "output.dense", time_first=True), show):
        out = layer(heads, other)
    assert not out[:, 0].any()
    assert torch.equal(out[:, 1], layer(heads, other)[:, 1])


def test_a_method_s_heads_are_packed_and_unpacked() -> None:
    layer, heads = Method(), torch.randn(3, 2, 4, 5)
    family = Family("Method", "project", time_first=True, method=True)

    def show(attention: nn.Module, shown: Tensor) -> Tensor:
        assert attention is layer
        assert torch.equal(shown, heads.transpose(0, 1).flatten(2))
        return shown * 0

    plain = layer(heads)
    with entering([layer], family, show):
        assert torch.equal(layer(heads), torch.ones(3, 2))
    assert torch.equal(layer(heads), plain)


@pytest.mark.parametrize(
    ("layer", "family"),
    [
        (Linear(), Family("Linear", "output.dense")),
        (Method(), Family("Method", "project", time_first=True, method=True)),
    ],
    ids=["module", "method"],
)
def test_nothing_stays_behind_also_when_nested_and_broken(layer: nn.Module, family: Family) -> None:
    def state() -> list[Any]:
        return [(sorted(vars(m)), list(m._forward_pre_hooks)) for m in layer.modules()]

    def nested_and_broken() -> None:
        with entering([layer], family, lambda _, heads: heads):
            inner = state()
            with entering([layer], family, lambda _, heads: heads):
                pass
            assert state() == inner != before
            raise KeyError

    before = state()
    with pytest.raises(KeyError):
        nested_and_broken()
    assert state() == before


def test_a_path_that_is_not_there_leaves_nothing_on_the_others() -> None:
    good, bad = Linear(), nn.Module()
    with (
        pytest.raises(AttributeError),
        entering([good, bad], Family("Linear", "output.dense"), lambda _, heads: heads),
    ):
        pass
    assert not good.output["dense"]._forward_pre_hooks
