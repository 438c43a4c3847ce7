"""Tiny models as GGUF files."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch

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
