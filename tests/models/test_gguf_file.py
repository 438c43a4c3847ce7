"""GGUF files: unpacked into plain weights, the library left as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import TINY

from headcount.errors import ModelError
from headcount.models.load import load, reading_gguf
from headcount.models.subject import Subject

gguf = pytest.importorskip("gguf")

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_llama(file: Path, model: torch.nn.Module) -> None:
    """A tiny Llama as a GGUF file, queries and keys interleaved as that format wants them."""
    writer = gguf.GGUFWriter(file, "llama")
    config = model.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.head_dim)
    for name, tensor in gguf_tensors(model).items():
        writer.add_tensor(name, np.ascontiguousarray(tensor.detach().numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights under their GGUF names."""
    state = model.state_dict()
    tensors = {
        "token_embd.weight": state["model.embed_tokens.weight"],
        "output_norm.weight": state["model.norm.weight"],
        "output.weight": state["lm_head.weight"],
    }
    for layer in range(model.config.num_hidden_layers):
        for ours, theirs in NAMES.items():
            weight = state[f"model.layers.{layer}.{ours}.weight"]
            if theirs in ("attn_q", "attn_k"):
                heads = weight.shape[0] // model.config.head_dim
                split = weight.reshape(heads, 2, -1, weight.shape[1])
                weight = split.transpose(1, 2).reshape(weight.shape)
            tensors[f"blk.{layer}.{theirs}.weight"] = weight
    return tensors


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.gguf"
    write_llama(file, TINY["llama"]())
    return file


def test_every_weight_comes_back(llama: Path) -> None:
    wanted = TINY["llama"]().state_dict()
    for name in (llama, llama.parent):
        subject = load(name, device="cpu")
        assert type(subject.model).__name__ == "LlamaForCausalLM"
        state = subject.model.state_dict()
        assert state.keys() == wanted.keys()
        assert all(torch.equal(state[key], wanted[key]) for key in wanted)


def test_the_model_is_plain_and_can_be_saved(llama: Path, tmp_path: Path) -> None:
    subject = load(llama, device="cpu")
    subject.model.save_pretrained(tmp_path / "saved")
    assert load(tmp_path / "saved", device="cpu").weights_hash == subject.weights_hash


def test_half_precision_when_asked(llama: Path) -> None:
    assert load(llama, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_a_file_without_tokens_has_no_tokenizer_and_says_so(llama: Path) -> None:
    subject = load(llama, device="cpu")
    assert subject.tokenizer is None
    assert subject.notes[0].startswith("no tokenizer: ")


def test_loading_says_nothing(llama: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load(llama, device="cpu")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kept", [200, 4])
def test_a_file_cut_off_gets_one_sentence(llama: Path, kept: int) -> None:
    llama.write_bytes(llama.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"The model 'tiny\.gguf' could not be loaded: ") as caught:
        load(llama, device="cpu")
    assert "\n" not in str(caught.value)


def test_the_library_is_as_before_also_after_an_error() -> None:
    before = (gguf.GGUFReader, gguf.get_tensor_name_map, sys.stderr)
    with pytest.raises(KeyboardInterrupt), reading_gguf():
        raise KeyboardInterrupt
    assert (gguf.GGUFReader, gguf.get_tensor_name_map, sys.stderr) == before


def test_without_the_package_one_sentence_says_so(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModelError, match=r"needs the package gguf, .* run `pip install gguf`"):
        load(llama, device="cpu")


@pytest.mark.real
def test_smollm2_knows_a_capital(smollm2: Subject) -> None:
    assert repr(smollm2) == (
        "Subject(smollm2: LlamaForCausalLM, 30 layers x 9 heads dec, float32 on cpu)"
    )
    assert smollm2.tokenizer is not None
    inputs = smollm2.tokenizer("The capital of France is", return_tensors="pt")
    with torch.no_grad():
        best = smollm2.model(**inputs).logits[0, -1].argmax()
    assert smollm2.tokenizer.decode(best).strip() == "Paris"
