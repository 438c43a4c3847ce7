"""Models in other programs' formats become the weights that they were written from."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tiny import TINY

from headcount.rooms.fetch.conversions import (
    _LAYER_NAMES,
    finish_whisper,
    read_ctranslate2,
    t5_weights,
    whisper_weights,
)


def ctranslate2_of(arrays: dict[str, np.ndarray]) -> bytes:
    """A `model.bin` as CTranslate2 writes it."""

    def word(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    parts = [struct.pack("<I", 6), word("WhisperSpec"), struct.pack("<II", 3, len(arrays))]
    kinds = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    for name, array in arrays.items():
        parts += [word(name), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)]
        parts += [struct.pack("<BI", kinds[str(array.dtype)], array.nbytes), array.tobytes()]
    return b"".join([*parts, struct.pack("<I", 0)])


def as_ctranslate2(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """A Whisper's weights under CTranslate2's names, queries, keys and values side by side."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    arrays: dict[str, np.ndarray] = {"decoder/alignment_layer": np.array(1, dtype=np.int16)}
    for stack in ("encoder", "decoder"):
        prefix = f"model.{stack}."
        arrays[f"{stack}/position_encodings/encodings"] = state[f"{prefix}embed_positions.weight"]
        for what, own in (("weight", "gamma"), ("bias", "beta")):
            arrays[f"{stack}/layer_norm/{own}"] = state[f"{prefix}layer_norm.{what}"]
        for layer in range(3):
            for path, places in _LAYER_NAMES.items():
                names = [f"{prefix}layers.{layer}.{place}" for place in places.split()]
                if f"{names[0]}.weight" not in state:
                    continue
                for what in ("weight", "bias"):
                    own = {"weight": "gamma", "bias": "beta"}[what] if "norm" in path else what
                    zero = np.zeros(len(state[f"{names[0]}.weight"]), np.float32)  # keys' bias
                    joined = np.concatenate([state.get(f"{one}.{what}", zero) for one in names])
                    arrays[f"{stack}/layer_{layer}/{path}/{own}"] = joined
    arrays["decoder/embeddings/weight"] = state["model.decoder.embed_tokens.weight"]
    for conv in ("conv1", "conv2"):
        for what in ("weight", "bias"):
            arrays[f"encoder/{conv}/{what}"] = state[f"model.encoder.{conv}.{what}"]
    return arrays


def test_whisper_comes_back_from_ctranslate2(tmp_path: Path) -> None:
    wide = {"vocab_size": 51864, "d_model": 64, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    model = TINY["whisper"](**wide, **heads).eval()
    data = ctranslate2_of(as_ctranslate2(model))
    weights = whisper_weights(read_ctranslate2(io.BytesIO(data)))
    state = {name: value for name, value in model.state_dict().items() if name != "proj_out.weight"}
    assert sorted(weights) == sorted(state)
    for name, value in state.items():
        np.testing.assert_array_equal(weights[name], value.numpy(), err_msg=name)
    (tmp_path / "model.bin").write_bytes(data)
    (tmp_path / "vocabulary.txt").touch()
    told = {"alignment_heads": [[1, 0]], "suppress_ids": [1], "suppress_ids_begin": [2]}
    (tmp_path / "config.json").write_text(json.dumps(told))
    finish_whisper(tmp_path, lambda name: tmp_path)
    loaded = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path, dtype=torch.float32
    ).eval()
    assert loaded.generation_config.alignment_heads == [[1, 0]]
    sound = torch.randn(1, 8, 20, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        one, two = (
            each(input_features=sound, decoder_input_ids=torch.tensor([[5, 6]])).logits
            for each in (model, loaded)
        )
    torch.testing.assert_close(one, two)


def test_t5_comes_back_from_whole_numbers() -> None:
    pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False,
    )  # fmt: skip
    state = transformers.T5ForConditionalGeneration(config).state_dict()
    held, number = [], 100
    for name in [one for one in state if one.startswith("decoder.block")] + ["lm_head.weight"]:
        value = state[name].numpy()
        if value.ndim == 1:
            held.append(numpy_helper.from_array(value, f"m.{name}"))
            continue
        scale = np.float32(np.abs(value).max() / 127)
        bare = f"m.{name}"
        whole = np.round(value / scale).astype(np.int8)
        if "relative" not in name:
            number, bare, whole = number + 9, f"onnx::MatMul_{number}", whole.T
        held += [
            numpy_helper.from_array(whole, f"{bare}_quantized"),
            numpy_helper.from_array(scale, f"{bare}_scale"),
            numpy_helper.from_array(np.int8(0), f"{bare}_zero_point"),
        ]
    weights = t5_weights(helper.make_graph([], "g", [], [], held[::-1]), "decoder", 2)
    wanted = [one for one in state if one.startswith("decoder.block")] + ["lm_head.weight"]
    assert sorted(weights) == sorted(wanted)
    for name in wanted:
        value = state[name].numpy()
        np.testing.assert_allclose(weights[name], value, atol=np.abs(value).max() / 250)
