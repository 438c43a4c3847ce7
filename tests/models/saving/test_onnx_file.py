"""ONNX: the file gives what the model gives, on other shapes than it was written with."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs
from tiny_subjects import encoder

from headcount.errors import ModelError
from headcount.models.saving.exports import write_onnx
from headcount.models.subject import Subject
from headcount.pruning.remove import prune


def test_a_cut_model_in_another_runtime(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    small = prune(encoder(), "enc.0.1,enc.1.0-2")
    said = small.save(tmp_path / "out", export="onnx")
    assert said.route == "onnx"
    assert said.apart <= 1e-4
    assert (tmp_path / "out" / "headcount.json").is_file()
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    inputs = tiny_inputs(small.model, batch=4, length=11, pad=3)
    got = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
    with torch.no_grad():
        wanted = answer(small.model(**inputs)).numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_an_encoder_decoder_is_one_graph_of_both_texts(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    whole = Subject(TINY["marian"](encoder_layers=1, decoder_layers=1))
    small = prune(whole, "enc.0.1,dec.0.0-2,cross.0.3")
    assert write_onnx(small, tmp_path) <= 1e-4
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    inputs = tiny_inputs(small.model, batch=4, length=11, pad=3)
    inputs["decoder_input_ids"] = inputs["decoder_input_ids"][:, :3]  # shorter than it was made
    got = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
    with torch.no_grad():
        wanted = small.model(**inputs).logits.numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError("No module named 'onnxruntime'", name="onnxruntime")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelError, match=r"needs the package onnxruntime.*headcount\[onnx\]"):
        write_onnx(Subject(TINY["bert"]()), tmp_path)
