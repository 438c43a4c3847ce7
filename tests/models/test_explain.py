"""Which weights may be missing or left over, by name."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import TINY

from headcount.errors import ModelError
from headcount.models.explain import check_files, check_weight_names


def told(missing: list[str] = (), extra: list[str] = ()) -> dict[str, Any]:  # type: ignore[assignment]
    return {"missing_keys": set(missing), "unexpected_keys": set(extra)}


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "pooler.dense.weight"),
        ("gpt2", "lm_head.weight"),
        ("t5", "lm_head.weight"),
        ("bart", "final_logits_bias"),
    ],
)
def test_heads_may_be_missing(family: str, name: str) -> None:
    notes = check_weight_names(TINY[family](), told(missing=[name]), "x")
    assert notes == [f"not in the checkpoint, so random until trained: {name}"]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "embeddings.word_embeddings.weight"),
        ("bert", "encoder.layer.0.attention.self.query.weight"),
        ("gpt2", "transformer.h.1.attn.c_attn.weight"),
        ("t5", "decoder.block.0.layer.1.EncDecAttention.q.weight"),
        ("vit", "layernorm.weight"),
    ],
)
def test_parts_of_the_model_may_not(family: str, name: str) -> None:
    with pytest.raises(ModelError, match=rf"has no {name}, which \w+ needs"):
        check_weight_names(TINY[family](), told(missing=[name]), "x")


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "cls.predictions.bias"),
        ("bert", "embeddings.position_ids"),
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"),
        ("gpt2", "h.0.attn.bias"),
        ("bert", "decoder.block.3.layer.0.weight"),
    ],
)
def test_what_may_be_left_over(family: str, name: str) -> None:
    notes = check_weight_names(TINY[family](), told(extra=[name]), "x")
    assert notes == [f"in the checkpoint, but not used by this class: {name}"]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "encoder.layer.7.output.dense.weight"),
        ("bert", "bert.encoder.layer.7.output.dense.weight"),
        ("gpt2", "h.5.attn.c_attn.weight"),
        ("llama", "model.layers.0.self_attn.adapter.weight"),
    ],
)
def test_a_layer_that_nobody_reads_may_not(family: str, name: str) -> None:
    with pytest.raises(ModelError, match=rf"holds {name}, which \w+ does not use"):
        check_weight_names(TINY[family](), told(extra=[name]), "x")


def test_many_names_are_counted() -> None:
    names = [f"encoder.layer.{i}.output.dense.weight" for i in range(7)]
    with pytest.raises(ModelError, match=r"layer\.2\.output\.dense\.weight and 4 more, which"):
        check_weight_names(TINY["bert"](), told(missing=names), "x")


@pytest.mark.parametrize(
    "files",
    [["model.safetensors"], ["a.safetensors", "pytorch_model.bin"], ["model-1.safetensors"]],
)
def test_safetensors_are_enough(files: list[str]) -> None:
    check_files(files, "x", allow_bin=False)


def test_a_pickle_needs_leave() -> None:
    check_files(["pytorch_model.bin"], "x", allow_bin=True)
    with pytest.raises(ModelError, match=r"only in pytorch_model-1\.bin, a pickle"):
        check_files(["pytorch_model-1.bin", "pytorch_model-2.bin"], "x", allow_bin=False)


def test_other_formats_are_named() -> None:
    with pytest.raises(ModelError, match=r"no \*\.safetensors file \(only tf_model\.h5\)"):
        check_files(["config.json", "tf_model.h5"], "x", allow_bin=True)
