"""e5-small: names found again in an ONNX graph."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from headcount.models.find import SHA256, bert_weights, is_model, model_dir

onnx = pytest.importorskip("onnx")


def graph_of_one_linear() -> object:
    """``x @ W.T + query.bias`` and a pooler, as the exporter writes them."""
    from onnx import helper, numpy_helper

    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    arrays = {
        "val_84": weight.T,
        "encoder.query.bias": np.ones(3, np.float32),
        "pooler.dense.weight": np.eye(3, dtype=np.float32),
        "embeddings.position_ids": np.arange(4),
        "val_90": np.zeros((2, 2), np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "val_84"], ["y"]),
        helper.make_node("Add", ["y", "encoder.query.bias"], ["z"]),
        helper.make_node("Add", ["z", "val_90"], ["w"]),
    ]
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    return helper.make_graph(nodes, "g", [], [], held)


def test_a_linear_layers_weight_is_found_by_its_bias() -> None:
    weights = bert_weights(graph_of_one_linear())
    assert sorted(weights) == [
        "encoder.query.bias",
        "encoder.query.weight",
        "pooler.dense.bias",
        "pooler.dense.weight",
    ]
    assert weights["encoder.query.weight"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert weights["encoder.query.weight"].flags["C_CONTIGUOUS"]
    assert weights["pooler.dense.bias"].tolist() == [0, 0, 0]


@pytest.mark.real
def test_the_cached_weights_are_the_pinned_ones() -> None:
    folder = model_dir("e5-small")
    if not is_model(folder):
        pytest.skip(f"e5-small is not in {folder.parent}; run `make models`")
    with (folder / "model.safetensors").open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == SHA256
