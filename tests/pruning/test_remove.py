"""Removing heads: what the copy is, and what is refused in which words."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from surgery import answer
from tiny import GROUPED, TINY, row, tiny_inputs
from transformers import BertModel, LlamaConfig, LlamaForCausalLM

from headcount.errors import HeadcountError, ModelError, UnknownHead, UnsupportedModel, UsageError
from headcount.models.anatomy import anatomy_of
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.pruning import remove
from headcount.pruning.remove import named_heads, prune
from headcount.records.heads import Head
from headcount.rooms.transformers4.masks import prune_heads


def bert() -> Subject:
    return Subject(TINY["bert"](), name="tiny")


def test_the_copy_is_smaller_and_the_subject_untouched() -> None:
    subject = bert()
    before = {name: value.clone() for name, value in subject.model.state_dict().items()}
    small = prune(subject, "enc.0.1,enc.1.0-2")
    assert [str(head) for head in small.heads] == ["enc.0.0", "enc.0.2", "enc.0.3", "enc.1.3"]
    assert small.name == "tiny without 4 heads"
    assert small.notes[-1] == "4 of 8 heads of tiny were removed."
    assert sum(p.numel() for p in small.model.parameters()) == sum(
        p.numel() for p in subject.model.parameters()
    ) - 4 * (4 * 8 * 32 + 3 * 8)
    after = subject.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not hasattr(subject.model.config, "headcount")


def test_modules_know_their_new_sizes() -> None:
    layer = prune(bert(), "enc.0.1").model.encoder.layer[0].attention
    assert (layer.self.num_attention_heads, layer.self.all_head_size) == (3, 24)
    assert (layer.self.query.out_features, layer.output.dense.in_features) == (24, 24)


def test_removing_nothing_gives_a_copy() -> None:
    small = prune(subject := bert(), [])
    assert small.heads == subject.heads
    assert small.model is not subject.model


def test_a_layer_without_heads_keeps_residual_and_bias() -> None:
    small = prune(bert(), "enc.0")
    inputs = tiny_inputs(small.model)
    with torch.no_grad():
        layer = small.model.encoder.layer[0].attention
        states = small.model.embeddings(inputs["input_ids"])
        got = layer(states)[0]
        wanted = layer.output.LayerNorm(states + layer.output.dense.bias)
    torch.testing.assert_close(got, wanted)
    assert {head.layer for head in small.heads} == {1}


def test_gradients_and_requires_grad_are_kept() -> None:
    subject = bert()
    subject.model.encoder.layer[0].attention.self.query.weight.requires_grad_(False)
    small = prune(subject, "enc.0.1")
    attention = small.model.encoder.layer[0].attention.self
    assert not attention.query.weight.requires_grad
    answer(small.model(**tiny_inputs(small.model))).sum().backward()
    assert attention.key.weight.grad.shape == (24, 32)


def test_half_precision() -> None:
    small = prune(Subject(TINY["bert"]().to(torch.bfloat16)), "enc.0.1")
    assert small.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("heads", "kind", "said"),
    [
        ("enc.0.9", UnknownHead, "There is no head enc.0.9; this model has enc.0.0 to enc.1.3."),
        (["enc.0.1", "enc.0.1"], UsageError, "enc.0.1 is named twice"),
        ("enc.0,enc.0.1", UsageError, "enc.0.1 is named twice"),
        ("enc", UsageError, "All 8 heads of the model would go; leave at least one"),
        ("enc-0-1", UsageError, "'enc-0-1' is not a head's name"),
    ],
)
def test_wrong_heads_are_refused(heads: str, kind: type[HeadcountError], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        prune(bert(), heads)


def test_a_removed_head_cannot_be_removed_again() -> None:
    with pytest.raises(UnknownHead, match=re.escape("There is no head enc.0.1")):
        prune(prune(bert(), "enc.0.1"), "enc.0.1")


def test_a_lone_head_of_a_group_says_what_would_work() -> None:
    with pytest.raises(UsageError) as refused:
        prune(Subject(TINY["llama"]()), "dec.1.2")
    said = str(refused.value)
    assert "Heads of dec.1 cannot go alone: 2 query heads share the keys of a group" in said
    assert "would have 2, 1 heads" in said
    assert "(dec.1.2, dec.1.3: add dec.1.3)" in said
    assert "as many heads from every group" in said


def test_one_query_head_of_a_model_with_one_key_head_can_go() -> None:
    single = row("LlamaForCausalLM", "LlamaConfig", GROUPED, num_key_value_heads=1)
    small = prune(Subject(single()), "dec.0.1")
    assert small.anatomy.sites[0].heads == 3
    assert small.anatomy.sites[0].kv_heads == 1


def test_a_shared_layer_loses_a_head_everywhere_or_nowhere() -> None:
    with pytest.raises(UsageError, match=r"serves 3 layers .* add enc.1.1, enc.2.1"):
        prune(Subject(TINY["albert"]()), "enc.0.1")


def test_an_adapter_is_to_be_merged_first() -> None:
    peft = pytest.importorskip("peft")
    lora = peft.LoraConfig(target_modules=["query"], r=2)
    wrapped = peft.get_peft_model(TINY["bert"](), lora)
    with pytest.raises(UsageError, match=r"merge first: model = model.merge_and_unload\(\)"):
        prune(Subject(wrapped), "enc.0.1")
    with pytest.raises(ModelError, match=r"query is wrapped in an adapter .* merge first"):
        prune(Subject(wrapped.get_base_model()), "enc.0.1")
    merged = Subject(wrapped.merge_and_unload())
    assert len(prune(merged, "enc.0.1").heads) == 7


def test_a_quantised_layer_is_refused() -> None:
    class Linear8bit(torch.nn.Linear):
        pass

    subject = bert()
    subject.model.encoder.layer[0].attention.self.query.__class__ = Linear8bit
    with pytest.raises(ModelError, match="is a Linear8bit, perhaps quantised"):
        prune(subject, "enc.0.1")


def test_heads_that_an_older_tool_listed_are_warned_of() -> None:
    model = TINY["bert"]()
    model.config.pruned_heads = {0: [1]}
    with pytest.warns(UserWarning, match=r"lists pruned_heads \{0: \[1\]\}, which transformers 5"):
        prune(Subject(model), "enc.0.2")


def test_a_wrong_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from headcount.pruning import remove

    def wrong(model: torch.nn.Module, keeps: object, sites: object) -> None:
        true_cut(model, keeps, sites)
        with torch.no_grad():
            model.encoder.layer[0].attention.self.value.weight[0] += 1.0

    true_cut = remove.cut_heads
    monkeypatch.setattr(remove, "cut_heads", wrong)
    with pytest.raises(UnsupportedModel, match="changed where no head was removed"):
        prune(bert(), "enc.0.1")


def test_a_subject_made_anew_from_the_small_model_knows_the_names() -> None:
    small = prune(bert(), "enc.0.1,enc.1.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Subject(small.model).heads == small.heads


def test_a_model_that_is_not_the_one_of_its_config_is_numbered_afresh() -> None:
    small = prune(bert(), "enc.0.1,enc.1.0")
    whole = BertModel(small.model.config)
    with pytest.warns(UserWarning, match="heads are numbered afresh"):
        anatomy = anatomy_of(whole)
    assert anatomy.heads == [Head("enc", layer, index) for layer in (0, 1) for index in range(4)]


@pytest.mark.real
def test_a_real_model(minilm: Subject) -> None:
    going = [head for head in minilm.heads if (head.layer + head.index) % 2]
    small = prune(minilm, going)
    assert len(small.heads) == 36
    assert minilm.model.num_parameters() - small.model.num_parameters() == 36 * (
        4 * 32 * 384 + 3 * 32
    )


# --- Heads to remove, in every way that a call may name them ------------------------------------


KNOWN = [Head(stack, layer, index) for stack in ("enc",) for layer in (0, 1) for index in (0, 1, 2)]
WANTED = [Head("enc", 0, 1), Head("enc", 1, 2)]
FRAME = pd.DataFrame(
    {"score": [0.9, 0.1, 0.8, 0.7, 0.6, 0.2]},
    index=pd.MultiIndex.from_tuples(KNOWN, names=["stack", "layer", "head"]),
)


@pytest.mark.parametrize(
    "heads",
    [
        "enc.0.1, enc.1.2",
        ["enc.0.1", Head("enc", 1, 2)],
        [("enc", 0, 1), ("enc", 1, 2)],
        {0: [1], 1: {2}},
        {"0": [1], "1": [2]},
        {"enc": {0: [1], 1: [2]}},
        {"enc.0.1": 0.0, Head("enc", 1, 2): 0},
        FRAME[FRAME["score"] < 0.5],
        FRAME[FRAME["score"] < 0.5].index,
        FRAME["score"] < 0.5,
    ],
    ids=str,
)
def test_one_meaning(heads: Any) -> None:
    assert named_heads(heads, KNOWN) == WANTED


def test_one_head_is_no_list_of_three_things() -> None:
    assert named_heads(WANTED[0], KNOWN) == WANTED[:1]


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (3, "3 names no heads; give names (['enc.0.1'])"),
        (None, "None names no heads"),
        (FRAME["score"], "The column 'score' holds float64 numbers"),
        ({"enc.0.1": 0.5}, "enc.0.1 has the scale 0.5; a head is removed where its scale is 0"),
        ({"enc": [0, 1]}, "[0, 1] is no mapping of layers to heads"),
        ({0: "12"}, "{0: '12'} is no mapping of layers to heads"),
        ({0: ["a"]}, "'enc.0.a' is not a head's name"),
    ],
)
def test_what_names_no_heads_is_refused(heads: Any, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        named_heads(heads, KNOWN)


# --- The call of transformers 4 -----------------------------------------------------------------


def test_the_model_itself_is_cut() -> None:
    model, twin = TINY["bert"](), TINY["bert"]()
    assert prune_heads(model, {0: [1, 2], 1: [3]}) is model
    small = prune(Subject(twin), "enc.0.1-2,enc.1.3")
    inputs = tiny_inputs(model, pad=2)
    with torch.no_grad():
        assert torch.equal(answer(model(**inputs)), answer(small.model(**inputs)))
    assert Subject(model).heads == small.heads


def test_numbers_stay_when_heads_are_removed_again() -> None:
    model = prune_heads(prune_heads(TINY["bert"](), {0: [1]}), {0: [3]})
    assert [head.index for head in Subject(model).heads if head.layer == 0] == [0, 2]


def test_a_head_that_is_gone_is_told_with_what_its_layer_has() -> None:
    model = prune_heads(TINY["bert"](), {"0": {1}})  # as JSON writes it
    with pytest.raises(UnknownHead, match=r"no head enc\.0\.1; enc\.0 has the heads 0, 2, 3\."):
        prune_heads(model, {0: [1]})


def test_three_stacks() -> None:
    model = prune_heads(TINY["t5"](), {"enc": {0: [1]}, "cross": {2: [0, 3]}})
    assert len(Subject(model).heads) == 4 * (2 + 3 + 3) - 3


def test_a_refusal_leaves_the_model_alone() -> None:
    model = TINY["llama"]()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(UsageError, match="cannot go alone"):
        prune_heads(model, {0: [1]})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not hasattr(model.config, "headcount")


@pytest.mark.parametrize(
    ("family", "heads", "said"),
    [
        ("marian", {0: [1]}, "The model has the stacks enc, dec, cross; say which is meant"),
        ("bert", {0: 1}, "{0: 1} is no mapping of layers to heads; write it as {0: [1, 2]}."),
        ("bert", ["enc.0.1"], "prune_heads takes layers with their heads, {0: [1, 2]}, not"),
        ("bert", {"encoder": {0: [1]}}, "There is no stack 'encoder'; stacks are enc, dec, cross."),
        ("bert", {0: [7]}, "There is no head enc.0.7"),
        ("bert", {"dec": {0: [1]}}, "There is no head dec.0.1"),
    ],
)
def test_prune_heads_wrong_heads_are_refused(
    family: str, heads: dict[object, object], said: str
) -> None:
    with pytest.raises((UsageError, UnknownHead), match=re.escape(said)):
        prune_heads(TINY[family](), heads)  # type: ignore[arg-type]


def test_a_config_that_another_model_has_marked_is_started_anew() -> None:
    config = prune_heads(TINY["bert"](), {0: [1]}).config
    with pytest.warns(UserWarning, match="numbered afresh"):
        small = prune(Subject(type(TINY["bert"]())(config).eval()), "enc.1.0")
    assert small.model.config.headcount["heads"] == {"enc.0": [0, 1, 2, 3], "enc.1": [1, 2, 3]}
    assert len(small.heads) == 7


def deep() -> Subject:
    """Thirty-two narrow layers in bfloat16, where rounding grows past any fixed tolerance."""
    config = LlamaConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=32,
        num_attention_heads=8, num_key_value_heads=4,
    )  # fmt: skip
    torch.manual_seed(0)
    return Subject(LlamaForCausalLM(config).to(torch.bfloat16).eval(), name="deep")


def test_a_deep_model_in_half_precision_is_pruned_saved_and_loaded(tmp_path: Path) -> None:
    subject = deep()
    small = prune(subject, [head for head in subject.heads if head.index >= 4])
    assert len(small.heads) == 128
    small.save(tmp_path / "small")
    again = load(tmp_path / "small", device="cpu", dtype="bfloat16")
    assert again.weights_hash == small.weights_hash


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ("self_attn.o_proj.weight", "changed where no head was removed"),
        ("self_attn.q_proj.weight", "changed where no head was removed"),
    ],
)
def test_a_wrong_cut_is_refused_in_half_precision(
    weight: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, right = deep(), remove.cut_heads

    def wrong(model: Any, *about: Any) -> None:
        right(model, *about)
        cut_one = model.get_parameter(f"model.layers.20.{weight}").data
        axis = 1 if "o_proj" in weight else 0
        cut_one.copy_(cut_one.flip(axis))

    monkeypatch.setattr(remove, "cut_heads", wrong)
    with pytest.raises(UnsupportedModel, match=said):
        prune(subject, [head for head in subject.heads if head.index >= 4])


def test_an_attention_that_scales_otherwise_is_refused_in_half_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject, right = deep(), remove.cut_heads

    def wrong(model: Any, *about: Any) -> None:
        right(model, *about)
        model.get_submodule("model.layers.20.self_attn").scaling *= 1.01

    monkeypatch.setattr(remove, "cut_heads", wrong)
    with pytest.raises(UnsupportedModel, match=r"in float32 the outputs of model.layers.20"):
        prune(subject, [head for head in subject.heads if head.index >= 4])
